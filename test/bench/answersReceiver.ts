import { readFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer, type TLSSocket } from "node:tls"
import type { Identity } from "../../src/Sandbox/Authority.ts"
import { pours } from "../lib/rawReceiver.ts"

// TLS receivers in a separate process, each with one way to answer: hostile ones go on for as long as they are read.
const [, , identityFile = ""] = process.argv
const { certificate, key }: Identity = JSON.parse(readFileSync(identityFile, "utf8"))

const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

const answers: Readonly<Record<string, (request: { readonly socket: TLSSocket }) => void>> = {
  plain: ({ socket }) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"),
  "headers without end": pours("HTTP/1.1 200 OK\r\n", "x-again: and again\r\n"),
  "short headers without end": pours("HTTP/1.1 200 OK\r\n", "a:\r\n"),
  "a chunk extension without end": pours(`${chunked}1;`, "x"),
  "one-byte chunks without end": pours(chunked, "1\r\nx\r\n"),
  "trailers without end": pours(`${chunked}1\r\na\r\n0\r\n`, "x-again: and again\r\n"),
  "interim responses without end": pours("", "HTTP/1.1 103 Early\r\n\r\n"),
  "a body without end": pours("HTTP/1.1 200 OK\r\n\r\n", "x")
}

const ports = await Promise.all(
  Object.entries(answers).map(
    ([kind, answer]) =>
      new Promise<readonly [string, number]>((resolve) => {
        const server = createServer({ key, cert: certificate }, (socket) => {
          socket.on("error", () => undefined)
          socket.once("data", () => answer({ socket }))
        })
        server.on("tlsClientError", () => undefined)
        server.listen(0, "127.0.0.1", () => resolve([kind, (server.address() as AddressInfo).port]))
      })
  )
)
console.log(JSON.stringify(Object.fromEntries(ports)))
