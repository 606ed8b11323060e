import { Duration, Effect, Fiber, Schedule } from "effect"
import { Client, type Dispatcher, Pool, request } from "undici"
import { quantile } from "../bench/Figure.ts"
import { memoryOf } from "../bench/memory.ts"
import { start } from "../bench/processes.ts"
import { openSocketsOf } from "../lib/offlineDaemon.ts"
import { type Answers, type FloodCounts, type FloodOrder, clients as floodingClients, manyAddresses } from "./Flood.ts"
import type { Tried } from "./hostile.ts"
import { createStranger, type Shop } from "./Shop.ts"

/** What a well-behaved client has seen. */
export interface Traffic {
  /** Payments that were made and read again. */
  readonly payments: number
  /** Anything but a 201 or a 200. */
  readonly failures: ReadonlyArray<string>
  /** Of one request on a connection that is kept, milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Of one on a new connection. */
  readonly newP50: number
  readonly newP99: number
  /** Of a POST, milliseconds. */
  readonly postP99: number
  /** Webhooks that arrived, and those that are missing ten seconds after the last payment. */
  readonly deliveries: number
  readonly missing: number
  /** From the answer to a POST to the arrival of its webhook, milliseconds. */
  readonly deliveryP99: number
}

export interface Beside {
  readonly quiet: Traffic
  readonly underAttack: Traffic
  /** Of the daemon in MiB; NaN where the machine does not tell. */
  readonly memory: { readonly before: number; readonly most: number }
  /** The least memory in the ordinary time behind the attack; NaN where there was none. */
  readonly rested: number
  /** Of the daemon, before the attack and when its last connection has ended. */
  readonly sockets: { readonly before: number; readonly after: number }
}

interface Pace {
  readonly breath: string
  readonly quietPayments: number
  /** Of ordinary traffic afterwards. */
  readonly rest?: Duration.DurationInput
}

const clients = 4
/** How often the daemon's memory is looked at. */
const glance = Schedule.spaced("200 millis")
let orders = 0

/**
 * Clients that make a payment and read it, again and again, with a breath in between, as long as `goesOn` says. Every other one
 * is read on a new connection.
 */
const behave = ({ arrived, nextKey, port }: Shop, breath: string, goesOn: (payments: number) => boolean) =>
  Effect.gen(function* () {
    const origin = `http://127.0.0.1:${port}`
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => new Pool(origin, { connections: clients })),
      (pool) => Effect.promise(() => pool.destroy())
    )
    const latencies: Readonly<Record<"GET" | "POST" | "new", Array<number>>> = { GET: [], POST: [], new: [] }
    const failures: Array<string> = []
    const promised: Array<readonly [id: string, at: number]> = []
    let payments = 0
    const call = async (
      method: "GET" | "POST",
      path: string,
      expected: number,
      body?: string,
      by: Dispatcher = pool
    ) => {
      const began = performance.now()
      const headers = { "x-api-key": nextKey(), ...(body === undefined ? {} : { "content-type": "application/json" }) }
      const response = await by.request({ method, path, headers, body: body ?? null })
      const text = await response.body.text()
      latencies[by === pool ? method : "new"].push(performance.now() - began)
      if (response.statusCode !== expected) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`)
      return JSON.parse(text) as { readonly id: string }
    }
    const pair = Effect.promise(async () => {
      try {
        const order = { merchantRef: `order ${++orders}`, amount: "1000000", currency: "USDC", chain: "base" }
        const { id } = await call("POST", "/v1/payments", 201, JSON.stringify(order))
        promised.push([id, performance.now()])
        const newcomer = payments % 2 === 1 ? new Client(origin) : undefined
        await call("GET", `/v1/payments/${id}`, 200, undefined, newcomer).finally(() => newcomer?.destroy())
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
    const all = [...latencies.GET, ...latencies.POST]
    yield* arrived.whole(promised.map(([id]) => id))
    const waits = promised.flatMap(([id, at]) => Math.max(0, (arrived.at(id) ?? Number.NaN) - at))
    const came = waits.filter((wait) => !Number.isNaN(wait))
    return {
      payments,
      failures,
      p50: quantile(all, 0.5),
      p99: quantile(all, 0.99),
      newP50: quantile(latencies.new, 0.5),
      newP99: quantile(latencies.new, 0.99),
      postP99: quantile(latencies.POST, 0.99),
      deliveries: came.length,
      missing: waits.length - came.length,
      deliveryP99: quantile(came, 0.99)
    } satisfies Traffic
  }).pipe(Effect.scoped)

/**
 * Ordinary traffic for so long; gives the least memory that the daemon had meanwhile. One look would tell how long ago the
 * last collection of garbage was: by ordinary traffic alone such looks differ by a quarter, the least of a minute by a tenth.
 */
export const rest = Effect.fn("test.rest")(function* (daemon: Shop, time: Duration.DurationInput, breath: string) {
  const until = performance.now() + Duration.toMillis(time)
  let least = Number.POSITIVE_INFINITY
  const watch = Effect.sync(() => {
    least = Math.min(least, memoryOf(daemon.pid, "now"))
  })
  yield* Effect.forkScoped(Effect.repeat(watch, glance))
  yield* behave(daemon, breath, () => performance.now() < until)
  return least
}, Effect.scoped)

const parse = <A>(line: string) => JSON.parse(line) as A

/** Runs a process of attackers against a daemon beside a well-behaved client; returns the measurements and its last line. */
const beside = <Said>(script: string) =>
  Effect.fnUntraced(function* (daemon: Shop, order: object, { breath, quietPayments, rest: restTime }: Pace) {
    const quiet = yield* behave(daemon, breath, (payments) => payments < quietPayments)
    const sockets = Effect.sync(() => openSocketsOf(daemon.pid) ?? Number.NaN)
    const before = { memory: memoryOf(daemon.pid, "now"), sockets: yield* sockets }
    let isOver = false
    let most = before.memory
    const watch = Effect.sync(() => {
      most = Math.max(most, memoryOf(daemon.pid, "now"))
    })
    yield* Effect.forkScoped(Effect.repeat(watch, glance))
    const traffic = yield* Effect.forkScoped(behave(daemon, breath, () => !isOver))

    const args = ["--import", "./scripts/typescript.mjs", `test/load/${script}`]
    const attackers = yield* start([...args, JSON.stringify({ port: daemon.port, ...order })], parse<object>)
    const last = (yield* attackers.ended).trim().split("\n").at(-1) ?? ""
    isOver = true
    const underAttack = yield* Fiber.join(traffic)
    // A refused connection waits for its refusal, five seconds at most, and one more for its client to read it.
    const after = yield* Effect.retry(
      Effect.filterOrFail(sockets, (open) => !(open > before.sockets)),
      Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(200))
    ).pipe(Effect.orElse(() => sockets))
    const seen: Beside = {
      quiet,
      underAttack,
      memory: { before: before.memory, most },
      rested: restTime === undefined ? Number.NaN : yield* rest(daemon, restTime, breath),
      sockets: { before: before.sockets, after }
    }
    return { ...seen, ...parse<Said>(last) }
  }, Effect.scoped)

const besideFlood = beside<{ readonly answers: Answers }>("flooders.ts")

/** The same with floods for so many seconds, or until the daemon has ended their connections; what is left of it after a rest. */
export const flood = (
  daemon: Shop,
  strangers: Strangers,
  counts: FloodCounts,
  { seconds, ...pace }: Pace & Pick<FloodOrder, "seconds">
) => besideFlood(daemon, { counts, seconds, ...strangers }, pace)

/** The same with hostile neighbours: a provider, a merchant, receivers. */
export const besideNeighbours = beside<{ readonly tried: Tried }>("hostile.ts")

/** The path of a new payment's page. */
const checkoutOf = (daemon: Shop) =>
  Effect.promise(async () => {
    const answer = await request(`http://127.0.0.1:${daemon.port}/v1/payments`, {
      method: "POST",
      headers: { "x-api-key": daemon.nextKey(), "content-type": "application/json" },
      body: JSON.stringify({ merchantRef: `order ${++orders}`, amount: "1000000", currency: "USDC", chain: "base" })
    })
    const { checkoutUrl } = (await answer.body.json()) as { readonly checkoutUrl: string }
    return new URL(checkoutUrl).pathname
  })

/** What strangers need to flood a daemon: a key of their own, and checkout pages. */
export const strangersOf = Effect.fn("test.strangersOf")(function* (daemon: Shop, pages = floodingClients) {
  return { key: yield* createStranger(daemon), pages: yield* Effect.replicateEffect(checkoutOf(daemon), pages) }
})

type Strangers = Effect.Effect.Success<ReturnType<typeof strangersOf>>

/**
 * Payers who look at a payment's page once, one after the other, each from an address that has asked for nothing before.
 * A payer who looks again may wait as long as all others: for how long depends on the machine. `seen` ends it.
 */
export const payers = Effect.fn("test.payers")(function* (daemon: Shop) {
  const path = yield* checkoutOf(daemon)
  const statuses: Array<number> = []
  const waits: Array<number> = []
  const look = Effect.promise(async () => {
    const localAddress = `127.0.4.${1 + waits.length}`
    const client = new Client(`http://127.0.0.1:${daemon.port}`, manyAddresses ? { localAddress } : {})
    const began = performance.now()
    const { body, statusCode } = await client.request({ method: "GET", path })
    await body.dump()
    statuses.push(statusCode)
    waits.push(performance.now() - began)
    await client.destroy()
  })
  const looking = yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced("500 millis")))
  return { seen: Effect.as(Fiber.interrupt(looking), { statuses, waits }) }
})
