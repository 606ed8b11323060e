import { performance } from "node:perf_hooks"
import { Pool } from "undici"

/** The load of one round, made in a process of its own. Prints what it measured as one JSON line. */
const [origin = "", apiKey = "", count = "0", prefix = ""] = process.argv.slice(2)
const connections = 64

const pool = new Pool(origin, { connections, pipelining: 1 })
const latencies: Array<number> = []
const refused: Array<string> = []
let acknowledged = 0
let next = 0

const client = async (): Promise<void> => {
  for (let i = next++; i < Number(count); i = next++) {
    const started = performance.now()
    const { body, statusCode } = await pool.request({
      method: "POST",
      path: "/v1/payments",
      headers: { "content-type": "application/json", "x-api-key": apiKey },
      body: JSON.stringify({
        merchantRef: `${prefix}-${i}`,
        amount: "25000000",
        currency: "USDC",
        chain: "base",
        metadata: { order: i, customer: "c-1029384756" }
      })
    })
    const text = await body.text()
    latencies.push(performance.now() - started)
    if (statusCode === 201) acknowledged++
    else refused.push(text)
  }
}

const started = performance.now()
await Promise.all(Array.from({ length: connections }, client))
const seconds = (performance.now() - started) / 1000
latencies.sort((a, b) => a - b)
const quantile = (q: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * q))] ?? 0
console.log(
  JSON.stringify({
    acknowledged,
    perSecond: acknowledged / seconds,
    p50: quantile(0.5),
    p99: quantile(0.99),
    refused: refused.slice(0, 3)
  })
)
await pool.close()
