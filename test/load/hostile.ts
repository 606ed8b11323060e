import { randomBytes } from "node:crypto"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, createServer, type Server } from "node:net"
import { Duration, Effect } from "effect"
import { Pool } from "undici"

export type Neighbour = "merchant" | "receivers" | "provider"

/** The orders of this process. */
interface NeighbourOrder {
  readonly who: ReadonlyArray<Neighbour>
  readonly port: number
  /** Of an account of the attacker's own. */
  readonly key: string
  /** Where the other chain's provider is expected. */
  readonly providerPort: number
  readonly seconds: number
}

/** How much harm was tried, by kind: requests by status, connections that were kept, answers that were given. */
export type Tried = Readonly<Record<string, number>>

// Hostile neighbours in a separate process: a merchant that uses all that one key allows; receivers of such a merchant that
// accept connections and never respond; and another chain's provider whose responses are meant to stall their reader.
// node hostile.ts '{"who":["merchant"],…}' prints a line once it has begun, and one when its time is over: what it has tried.
const order = JSON.parse(process.argv[2] ?? "") as NeighbourOrder
const { key, port, providerPort, seconds, who } = order
const tried: Record<string, number> = {}
const count = (what: string) => {
  tried[what] = (tried[what] ?? 0) + 1
}
let isOver = false

const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 64 })
const run = randomBytes(4).toString("hex")
let made = 0

/** Sends a request with the attacker's key, and counts how it was answered. */
const send = async (method: "GET" | "POST", path: string, body?: unknown) => {
  try {
    const headers = { "x-api-key": key, "content-type": "application/json" }
    const answer = await pool.request({ method, path, headers, body: body === undefined ? null : JSON.stringify(body) })
    await answer.body.dump()
    count(`${method} ${answer.statusCode}`)
  } catch {
    count("no answer")
  }
}

const payment = (over: object) => ({
  merchantRef: `${run} ${made}`,
  amount: "1000000",
  currency: "USDC",
  chain: "base",
  ...over
})

/** As much of one thing after another as is answered. */
const hammer = (connections: number, request: (n: number) => Promise<void>) => {
  const again = async (): Promise<void> => {
    while (!isOver) await request(++made)
  }
  for (let i = 0; i < connections; i++) void again()
}

const metadata = { note: "x".repeat(15_000) }

/** Takes connections, and nothing that comes over them. */
const blackHole = () =>
  new Promise<Server>((resolve) => {
    const server = createServer((socket) => {
      count("connections to black holes")
      socket.on("error", () => undefined).pause()
    })
    server.listen(0, "0.0.0.0", () => resolve(server))
  })

const deep = "[".repeat(20_000_000)
const nested = `{"jsonrpc":"2.0","id":0,"result":${"[".repeat(3_000)}${"]".repeat(3_000)}}`
const answers = [deep, nested, `[${"{},".repeat(5_000_000)}{}]`, `{"error":{"data":${"[".repeat(5_000)}`, "", "0"]

const begin: Readonly<Record<Neighbour, () => Promise<void>>> = {
  merchant: async () => {
    const url = (n: number) => ({
      url: `https://127.0.0.1:9/${n}`,
      events: ["payment.created"],
      secret: "whsec_".padEnd(40, "0")
    })
    hammer(16, () => send("POST", "/v1/payments", payment({ metadata })))
    hammer(8, () => send("GET", "/v1/payments?limit=100"))
    hammer(4, (n) => send("POST", "/v1/webhooks", url(n)))
    hammer(4, () => send("POST", "/v1/quotes", { fromCurrency: "EUR", toCurrency: "USDC", amount: "1" }))
    hammer(4, () => send("POST", "/v1/payments", { metadata: Array.from({ length: 20_000 }, () => null) }))
  },
  receivers: async () => {
    const { port: holes } = (await blackHole()).address() as AddressInfo
    // Each an origin of its own.
    const webhookUrl = (n: number) => `https://127.${1 + (n % 250)}.${Math.floor(n / 250) % 250}.1:${holes}/`
    hammer(8, (n) => send("POST", "/v1/payments", payment({ webhookUrl: webhookUrl(n) })))
  },
  provider: () =>
    new Promise((resolve) => {
      let given = 0
      const server = createHttpServer((request, response) => {
        request.resume().on("end", () => {
          count("answers of the provider")
          response.end(answers[given++ % answers.length])
        })
      })
      server.listen(providerPort, "127.0.0.1", resolve)
    })
}

for (const one of who) await begin[one]()
process.stdout.write(`${JSON.stringify({ opened: who.length })}\n`)
await Effect.runPromise(Effect.sleep(Duration.seconds(seconds)))
isOver = true
process.stdout.write(`${JSON.stringify({ tried })}\n`)
process.exit(0)
