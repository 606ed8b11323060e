// @effect-diagnostics globalTimers:off globalDate:off
import { readFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import type { Identity } from "../../src/Sandbox/Authority.ts"
import { quantile } from "./Figure.ts"

// HTTPS receivers in a separate process, the first of which never responds. It says their ports, and how long after
// their payments' creation events came when the others have had all that was expected, or nothing for a while.
const [, , identityFile = "", count = "", expected = ""] = process.argv
const { certificate, key }: Identity = JSON.parse(readFileSync(identityFile, "utf8"))

const latencies = new Map<string, number>()
let held = 0

const conclude = () => {
  const all = [...latencies.values()]
  console.log(JSON.stringify({ arrived: all.length, held, p50: quantile(all, 0.5), p99: quantile(all, 0.99) }))
  process.exit(0)
}

const patience = setTimeout(conclude, 20_000)

const record = (text: string, at: number) => {
  const { data, id } = JSON.parse(text)
  latencies.set(id, at - Date.parse(data.createdAt))
  patience.refresh()
  if (latencies.size === Number(expected)) conclude()
}

const servers = Array.from({ length: Number(count) }, (_, i) =>
  createServer({ key, cert: certificate }, (request, response) => {
    let text = ""
    request.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
    })
    request.once("end", () => {
      if (i === 0) {
        held++
        return
      }
      record(text, Date.now())
      response.writeHead(204).end()
    })
  })
)
await Promise.all(servers.map((server) => new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))))
console.log(JSON.stringify(servers.map((server) => (server.address() as AddressInfo).port)))
