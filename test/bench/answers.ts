import { Effect } from "effect"
import { clientWith } from "../lib/deliveryClient.ts"
import { identity } from "./backlog.ts"
import { type Figure, millis, times } from "./Figure.ts"
import { startScript } from "./processes.ts"

const attempts = 40

/** What receivers' answers cost this process, beside a plain one: each over a new connection. */
export const answers = Effect.gen(function* () {
  const { caFile, identityFile } = yield* identity
  const { said: ports } = yield* startScript<Record<string, number>>("answersReceiver.ts", [identityFile])
  const client = yield* clientWith(caFile)
  const costOf = (port: number) =>
    Effect.gen(function* () {
      const post = client.post({ url: `https://127.0.0.1:${port}/`, headers: {}, body: Buffer.from("{}") })
      yield* Effect.repeatN(post, 4)
      const before = process.cpuUsage()
      yield* Effect.repeatN(post, attempts - 1)
      const { system, user } = process.cpuUsage(before)
      return (system + user) / 1000 / attempts
    })
  const plain = yield* costOf(ports.plain ?? 0)
  const hostile = Object.entries(ports).filter(([kind]) => kind !== "plain")
  return yield* Effect.forEach(hostile, ([kind, port]) =>
    Effect.map(
      costOf(port),
      (cost): Figure => ({
        what: `an attempt that is answered with ${kind}`,
        measured: `${millis(cost)} of processor time`,
        beside: `${millis(plain)} for a plain answer`,
        judged: cost / plain,
        floor: { atMost: 4 },
        written: times
      })
    )
  )
}).pipe(Effect.scoped)
