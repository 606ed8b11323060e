// @effect-diagnostics globalTimers:off
import { readFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import type { Identity } from "../../src/Sandbox/Authority.ts"

// HTTPS receivers in a separate process, each of whose answers takes a moment. It says their ports, and how fast
// everything came when they have had all that was expected, or nothing for a while. As bare as can be: it must not be
// what is measured.
const [, , identityFile = "", count = "", latencyMillis = "", expected = ""] = process.argv
const { certificate, key }: Identity = JSON.parse(readFileSync(identityFile, "utf8"))

const ids = new Set<unknown>()
const arrivals: Array<number> = []

const conclude = () => {
  // Without the first tenth, in which connections are opened.
  const [from = 0, to = 0] = [arrivals[Math.floor(arrivals.length / 10)], arrivals.at(-1)]
  console.log(JSON.stringify({ different: ids.size, perSecond: (arrivals.length * 0.9 * 1000) / (to - from) }))
  process.exit(0)
}

const patience = setTimeout(conclude, 20_000)

const servers = Array.from({ length: Number(count) }, () =>
  createServer({ key, cert: certificate }, (request, response) => {
    request.resume().once("end", () => {
      patience.refresh()
      arrivals.push(performance.now())
      ids.add(request.headers["webhook-id"])
      setTimeout(() => response.writeHead(204).end(), Number(latencyMillis))
      if (ids.size === Number(expected)) setTimeout(conclude, Number(latencyMillis) * 4)
    })
  })
)
await Promise.all(servers.map((server) => new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))))
console.log(JSON.stringify(servers.map((server) => (server.address() as AddressInfo).port)))
