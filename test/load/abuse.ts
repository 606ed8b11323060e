import { Effect, Fiber, Schedule } from "effect"
import { Pool } from "undici"
import { quantile } from "../../bench/Figure.ts"
import { memoryOf } from "../../bench/memory.ts"
import { start } from "../../bench/processes.ts"
import { type AloneDaemon, openSocketsOf } from "../lib/aloneDaemon.ts"
import type { Attack, Counts, Outcomes } from "./Attack.ts"

/** What a well-behaved client has seen. */
export interface Traffic {
  /** Payments that were made and read again. */
  readonly payments: number
  /** Anything but a 201 or a 200. */
  readonly failures: ReadonlyArray<string>
  /** Of one request, milliseconds. */
  readonly p50: number
  readonly p99: number
}

export interface Report {
  readonly quiet: Traffic
  readonly underAttack: Traffic
  readonly outcomes: Outcomes
  /** Of the daemon in MiB; NaN where the machine does not tell. */
  readonly memory: { readonly before: number; readonly most: number }
  /** Of the daemon, before the attack and when its last connection has ended. */
  readonly sockets: { readonly before: number; readonly after: number }
}

const clients = 4
let orders = 0

/** Clients that make a payment and read it, again and again, with a breath in between, as long as `goesOn` says. */
const behave = ({ key, port }: AloneDaemon, breath: string, goesOn: (payments: number) => boolean) =>
  Effect.gen(function* () {
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => new Pool(`http://127.0.0.1:${port}`, { connections: clients })),
      (pool) => Effect.promise(() => pool.destroy())
    )
    const latencies: Array<number> = []
    const failures: Array<string> = []
    let payments = 0
    const call = async (method: "GET" | "POST", path: string, expected: number, body?: string) => {
      const began = performance.now()
      const headers = { "x-api-key": key, ...(body === undefined ? {} : { "content-type": "application/json" }) }
      const response = await pool.request({ method, path, headers, body: body ?? null })
      const text = await response.body.text()
      latencies.push(performance.now() - began)
      if (response.statusCode !== expected) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`)
      return JSON.parse(text) as { readonly id: string }
    }
    const pair = Effect.promise(async () => {
      try {
        const order = { merchantRef: `order ${++orders}`, amount: "1000000", currency: "USDC", chain: "base" }
        const { id } = await call("POST", "/v1/payments", 201, JSON.stringify(order))
        await call("GET", `/v1/payments/${id}`, 200)
        payments += 1
      } catch (error) {
        failures.push(String(error))
      }
    })
    const client = Effect.repeat(pair, {
      schedule: Schedule.spaced(breath as "1 second"),
      while: () => goesOn(payments + failures.length)
    })
    yield* Effect.all(
      Array.from({ length: clients }, () => client),
      { concurrency: "unbounded", discard: true }
    )
    const traffic: Traffic = { payments, failures, p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
    return traffic
  }).pipe(Effect.scoped)

const parse = <A>(line: string) => JSON.parse(line) as A

/** Lets an attack loose on a daemon beside a well-behaved client, and tells what each has seen. */
export const abuse = Effect.fn("test.abuse")(function* (
  daemon: AloneDaemon,
  counts: Counts,
  { breath, quietPayments }: { readonly breath: string; readonly quietPayments: number }
) {
  const quiet = yield* behave(daemon, breath, (payments) => payments < quietPayments)
  const before = { memory: memoryOf(daemon.pid, "now"), sockets: openSocketsOf(daemon.pid) ?? Number.NaN }
  let isOver = false
  let most = before.memory
  const watch = Effect.sync(() => {
    most = Math.max(most, memoryOf(daemon.pid, "now"))
  })
  yield* Effect.forkScoped(Effect.repeat(watch, Schedule.spaced("200 millis")))
  const traffic = yield* Effect.forkScoped(behave(daemon, breath, () => !isOver))

  const attack: Attack = { port: daemon.port, counts }
  const script = ["--import", "./scripts/typescript.mjs", "test/load/attackers.ts", JSON.stringify(attack)]
  const attackers = yield* start(script, parse<{ readonly opened: number }>)
  const { outcomes } = parse<{ readonly outcomes: Outcomes }>((yield* attackers.ended).trim().split("\n").at(-1) ?? "")
  isOver = true
  const underAttack = yield* Fiber.join(traffic)
  const sockets = Effect.sync(() => openSocketsOf(daemon.pid) ?? Number.NaN)
  // The well-behaved client's connections too take a moment to end.
  const after = yield* Effect.retry(
    Effect.filterOrFail(sockets, (open) => !(open > before.sockets)),
    Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(100))
  ).pipe(Effect.orElse(() => sockets))
  const report: Report = {
    quiet,
    underAttack,
    outcomes,
    memory: { before: before.memory, most },
    sockets: { before: before.sockets, after }
  }
  return report
}, Effect.scoped)
