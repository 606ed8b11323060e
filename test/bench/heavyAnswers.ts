import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

// A provider in a separate process, whose every answer is 20 MB: brackets, or as many values as a block may have.

const mebibyte = 2 ** 20
const size = 20 * mebibyte

const brackets = (): Buffer => Buffer.from(`[${"[],".repeat(size / 3)}[]]`)

/** Members of 40 bytes: just below the most values that any answer may have. */
const values = (): Buffer => {
  const member = '{"a":"0123456789abcdef0123456789abcd"},'
  const few = `[{"id":0,"result":{"transactions":[${member.repeat(240_000)}{}],"extra":"`
  return Buffer.from(`${few}${"f".repeat(size - few.length)}"}}]`)
}

const bodies: Readonly<Record<string, Buffer>> = {
  "/quiet": Buffer.from("[]"),
  "/brackets": brackets(),
  "/values": values()
}

const server = createServer((request, response) => {
  request.resume().once("end", () => {
    const body = bodies[request.url ?? ""] ?? Buffer.alloc(0)
    response.writeHead(200, { "content-length": body.length }).end(body)
  })
})
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify((server.address() as AddressInfo).port)))
