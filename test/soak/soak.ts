import { existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { Clock, Duration, Effect, Exit, Random, Schedule, Scope } from "effect"
import { type ChainName, chainNames } from "../../src/Domain/Chain.ts"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { type Behaviour, startReceiver } from "../../src/Sandbox/Receiver.ts"
import { type Chains, type Home, localChain, makeHome, serve } from "../lib/daemon.ts"
import { takeStories } from "../lib/processes.ts"
import { temporaryFolder } from "../lib/store.ts"
import { backUp } from "./backUp.ts"
import { planOf } from "./plans.ts"
import { ledger, open, reconcile } from "./reconcile.ts"
import { Book, behave, makeNodes, makePost, reorg, type World } from "./world.ts"

export interface Soak {
  readonly minutes: number
  /** Orders a second. */
  readonly rate: number
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

/** Where the merchant gets its webhooks. */
export const paths = { prompt: "/prompt", slow: "/slow", failing: "/failing" } as const

/**
 * The receivers: one is prompt, one takes a second, and one refuses every tenth attempt, an event twice at most: its
 * fourth attempt would come after the run.
 */
const makeReceivers = (): Behaviour => {
  const refused = new Map<string, number>()
  return ({ headers, n, path }) => {
    if (path === paths.slow) return Effect.delay(Effect.succeed(204), "1 second")
    const id = String(headers["webhook-id"])
    const times = refused.get(id) ?? 0
    if (path !== paths.failing || n % 10 !== 0 || times === 2) return 204
    refused.set(id, times + 1)
    return 500
  }
}

/** Where the daemon's lives record their heaps. */
const heapsOf = (home: Home) => `${home.database}.heaps`

/** Starts a life of the daemon. `end` ends it. */
const live = (home: Home, key?: string) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const env = {
      TILLD_LOG__LEVEL: "info",
      TILLD_SERVER__PORT: "0",
      SOAK_HEAP: heapsOf(home),
      NODE_OPTIONS: `--import ${new URL("heap.mjs", import.meta.url).href}`
    }
    const daemon = yield* Scope.extend(serve(home, key, env), scope)
    return { daemon, end: Scope.close(scope, Exit.void) }
  })

const residentMiB = (pid: number): number | undefined => {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024
  } catch {
    // It is between two lives.
    return undefined
  }
}

const heapsIn = (file: string): Book["heaps"] =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
    : []

const bytesOf = (database: string): number =>
  ["", "-wal"].reduce((sum, end) => sum + (statSync(database + end, { throwIfNoEntry: false })?.size ?? 0), 0)

/** Runs payments of all kinds against a daemon that is restarted and backed up, on chains that reorganise. */
export const soak = Effect.fn("soak")(function* ({ minutes, rate }: Soak, say: (line: string) => void) {
  const names: ReadonlyArray<ChainName> = chainNames
  const chains: Chains = new Map(
    yield* Effect.forEach(names, (name) => Effect.map(localChain(name), (chain) => [name, chain] as const), {
      concurrency: 2
    })
  )
  const folder = yield* temporaryFolder
  const caFile = join(folder, "ca.pem")
  const receiver = yield* startReceiver({ behaviour: makeReceivers(), caFile }).pipe(
    Effect.provide(NodeFileSystem.layer)
  )
  const home = yield* makeHome({ chains, caFile, prices: { DAI: "1" } })
  const book = new Book()
  const first = yield* live(home)
  let life = first
  const world: World = { nodes: yield* makeNodes(chains), receiver, book, daemon: first.daemon }
  const post = yield* makePost(world, () => world.daemon)
  for (const path of Object.values(paths)) {
    const body = { url: receiver.url + path, events: StatusEventKind.literals, secret }
    yield* post("/v1/webhooks", body, path)
  }
  const total = Duration.toMillis(Duration.minutes(minutes))
  const began = yield* Clock.currentTimeMillis

  const order = (n: number) =>
    Effect.gen(function* () {
      const plan = planOf(n)
      const chain = plan.chain ?? names[n % names.length] ?? "base"
      const isCoin = plan.chain === undefined && chain !== "polygon" && n % 3 === 0
      const payment = yield* post<PaymentObject>(
        "/v1/payments",
        {
          ...{ merchantRef: `order ${n}`, chain, expiresIn: plan.expiresIn },
          ...(isCoin ? { currency: "ETH", amount: "2000000000000000" } : { currency: "USDC", amount: "25000000" })
        },
        `order ${n}`
      )
      const made = { plan, payment }
      if (plan.isCancelled) yield* post(`/v1/payments/${payment.id}/cancel`, {}, `cancel ${n}`)
      book.orders.push(made)
      yield* behave(world, made)
    }).pipe(
      Effect.catchAll((error) =>
        Effect.sync(() => void book.problems.push(`order ${n}: ${error.message || error._tag}`))
      )
    )

  const keepErrors = () =>
    void book.errors.push(...life.daemon.lines().filter((line) => line.includes('"ERROR"') || line.includes('"FATAL"')))

  const restart = (signal: "SIGTERM" | "SIGKILL") =>
    Effect.gen(function* () {
      const { code } = yield* life.daemon.end(signal)
      keepErrors()
      if (signal === "SIGTERM" && code !== 0) book.problems.push(`a stop ended with ${code}`)
      yield* life.end
      life = yield* live(home, first.daemon.key)
      world.daemon = life.daemon
      book.counts[signal === "SIGTERM" ? "restarts" : "kills"]++
    })

  /** Six in the first three eighths, so that one life is long enough to tell whether its memory grows. */
  const restarts = Effect.forEach(
    ["SIGTERM", "SIGKILL", "SIGKILL", "SIGTERM", "SIGKILL", "SIGTERM"] as const,
    (signal) => Effect.zipRight(Effect.sleep(total / 16), restart(signal)),
    { concurrency: 1, discard: true }
  )

  const measure = Effect.map(Clock.currentTimeMillis, (at) => {
    const value = residentMiB(world.daemon.pid)
    if (value !== undefined) book.memory.push({ at, value, life: world.daemon.pid })
    book.bytes.push({ at, value: bytesOf(home.database) })
    // What a process has said is kept for a failing test: forget it.
    takeStories()
  })

  const tell = Effect.gen(function* () {
    const { deliveries, payments } = yield* open(world)
    const minute = (((yield* Clock.currentTimeMillis) - began) / 60_000).toFixed(0)
    say(
      `minute ${minute}: ${book.orders.length} orders, ${payments} open, ${deliveries} deliveries owed, ` +
        `${residentMiB(world.daemon.pid)?.toFixed(0)} MiB, ${book.problems.length} problems`
    )
  })

  const every = (millis: number) => Schedule.spaced(millis)
  const mining = [...world.nodes.values()].map(({ chain, turn }) => Effect.repeat(turn(chain.mine(1)), every(2_000)))
  const disturb = Effect.all(
    [
      Effect.sleep(20_000).pipe(
        Effect.zipRight(Random.choice([...world.nodes.values()])),
        Effect.flatMap(reorg),
        Effect.tap(() => Effect.sync(() => book.counts.reorgs++)),
        Effect.repeat(every(30_000))
      ),
      Effect.sleep(total / 24).pipe(
        Effect.zipRight(backUp(home, join(folder, "copy"))),
        Effect.tap((problems) =>
          Effect.sync(() => {
            book.counts.backups++
            book.problems.push(...problems)
          })
        ),
        Effect.forever
      ),
      Effect.repeat(measure, every(5_000)),
      Effect.repeat(tell, every(60_000)),
      restarts
    ],
    { concurrency: "unbounded", discard: true }
  )

  /** Orders come evenly, and payers act beside each other, until time is up and each order has come to its end. */
  const orders = Effect.gen(function* () {
    const payers = yield* Effect.makeSemaphore(10_000)
    yield* Effect.scoped(
      Effect.gen(function* () {
        while ((yield* Clock.currentTimeMillis) < began + total) {
          book.counts.asked++
          yield* Effect.forkScoped(payers.withPermits(1)(order(book.counts.asked)))
          yield* Effect.sleep(1_000 / rate)
        }
        yield* payers.withPermits(10_000)(Effect.void)
      })
    )
    say(`minute ${minutes}: no new orders`)
    yield* Effect.repeat(open(world), {
      schedule: Schedule.spaced("1 second").pipe(Schedule.upTo("10 minutes")),
      until: ({ deliveries, payments }) => payments === 0 && deliveries === 0
    })
  })

  /** Native coin that came late on other chains than ethereum is found after each start. No reorg disturbs the comparison. */
  const compare = Effect.gen(function* () {
    yield* restart("SIGTERM")
    yield* Effect.repeat(ledger(world), {
      schedule: Schedule.spaced("10 seconds").pipe(Schedule.upTo("5 minutes")),
      until: (different) => different.length === 0
    })
  })

  const during = <A, E>(work: Effect.Effect<A, E>, others: ReadonlyArray<Effect.Effect<unknown, unknown>>) =>
    Effect.raceFirst(
      work,
      Effect.zipRight(Effect.all(others, { concurrency: "unbounded", discard: true }), Effect.never)
    )
  yield* during(orders, [...mining, disturb])
  const loaded = world.daemon.pid
  yield* during(compare, mining)
  const problems = [...book.problems, ...(yield* reconcile(world, secret))]
  const { code } = yield* life.daemon.end("SIGTERM")
  keepErrors()
  yield* life.end
  book.heaps.push(...heapsIn(heapsOf(home)))
  return {
    book,
    home,
    began,
    loaded,
    problems: [...problems, ...(code === 0 ? [] : [`the last stop ended with ${code}`])],
    arrivals: yield* receiver.all
  }
})
