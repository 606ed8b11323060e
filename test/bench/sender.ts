import { text } from "node:stream/consumers"
import { Effect } from "effect"
import { makeHttpClient, readBody } from "../../src/lib/httpClient.ts"

// The barest loop of the daemon's own HTTP client: so many requests at once over kept connections, and nothing stored,
// read, signed or checked.
const [, , caFile = "", ports = "", concurrency = "", count = "", bytes = ""] = process.argv

const urls = ports.split(",").map((port) => new URL(`https://127.0.0.1:${port}/`))
const body = Buffer.alloc(Number(bytes), "x")

console.log(JSON.stringify("sending"))
await Effect.runPromise(
  Effect.scoped(
    Effect.flatMap(makeHttpClient("4 seconds", caFile), (client) =>
      Effect.forEach(
        Array.from({ length: Number(count) }, (_, i) => i),
        (i) => {
          const headers = { "content-type": "application/json", "webhook-id": `evt_${i}` }
          const url = urls[i % urls.length] ?? new URL("https://127.0.0.1/")
          const answered = client.send({ url, method: "POST", headers, body, maxBytes: 65_536 })
          return Effect.flatMap(answered, (response) => readBody(response, text))
        },
        { concurrency: Number(concurrency), discard: true }
      )
    )
  )
)
