import { Effect } from "effect"
import { concurrency, identity } from "./backlog.ts"
import { createKey, install, localChain, startDaemon, temporaryFolder } from "./daemon.ts"
import { count, type Figure, millis } from "./Figure.ts"
import { startScript } from "./processes.ts"
import { type LoadRequest, runLoad } from "./runLoad.ts"

const perSecond = 500
const seconds = 20
const receivers = 4
const events = perSecond * seconds

interface Conclusion {
  /** Events that arrived at receivers that answer. */
  readonly arrived: number
  /** Events that arrived at the one that does not. */
  readonly held: number
  /** Milliseconds from a payment's `createdAt` to the arrival. */
  readonly p50: number
  readonly p99: number
}

const payment = (i: number, ports: ReadonlyArray<number>): LoadRequest => ({
  method: "POST",
  path: "/v1/payments",
  body: JSON.stringify({
    merchantRef: `order-${i}`,
    amount: "25000000",
    currency: "USDC",
    chain: "base",
    webhookUrl: `https://127.0.0.1:${ports[i % ports.length]}/`
  })
})

/** What one receiver that never responds does to the events of the others, while events come at a steady pace. */
export const hanging = Effect.gen(function* () {
  const { caFile, identityFile } = yield* identity
  const expected = (events / receivers) * (receivers - 1)
  const { ended, said: ports } = yield* startScript<ReadonlyArray<number>>("arrivals.ts", [
    identityFile,
    ...[receivers, expected].map(String)
  ])
  const installation = yield* install(yield* localChain, { extra_ca_file: caFile, concurrency })
  const { said: port } = yield* startDaemon(installation)
  const apiKey = yield* createKey(installation)
  const requests = Array.from({ length: events }, (_, i) => payment(i, ports))
  yield* runLoad(yield* temporaryFolder, port, 16, { apiKey, requests, perSecond })
  const { arrived, held, p50, p99 }: Conclusion = JSON.parse((yield* ended).trim().split("\n").at(-1) ?? "")

  const figures: ReadonlyArray<Figure> = [
    {
      what: `commit to receipt, p99, ${perSecond}/s`,
      measured: `p50 ${millis(p50)}, ${count(arrived)} events, one of ${receivers} endpoints hangs with ${held} requests`,
      judged: p99,
      floor: { atMost: 500 },
      goal: { atMost: 100 },
      written: millis
    },
    {
      what: "the others' events that did not arrive",
      measured: `${count(arrived)} of ${count(expected)}`,
      judged: expected - arrived,
      floor: { atMost: 0 },
      written: count
    }
  ]
  return figures
}).pipe(Effect.scoped)
