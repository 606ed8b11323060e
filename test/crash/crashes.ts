import { watch } from "node:fs"
import { Deferred, Effect, Fiber, FiberId, Option, Schedule } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { Received } from "../../src/Sandbox/Receiver.ts"
import type { Installation } from "../bench/daemon.ts"
import { type Ended, type Running, takeStories } from "../lib/processes.ts"
import { heldOfAPath, type Kind, type Moment, moments, ordersOfALife } from "./moments.ts"
import { listening, makePayer, open, place, type Shop, start } from "./Shop.ts"
import { judge, reading, type Verdict } from "./verdict.ts"

/** How lives end, all but the last. */
export interface Ending {
  readonly signal: NodeJS.Signals
  /** Before each life: additional environment of its daemon. */
  readonly prepare: (installation: Installation, life: number) => Effect.Effect<Readonly<Record<string, string>>>
  /** After each life: the change of its files. */
  readonly after: (installation: Installation) => Effect.Effect<void>
  /** Whether a daemon may end like this. */
  readonly isExpected: (ended: Ended) => boolean
}

export const killed: Ending = {
  signal: "SIGKILL",
  prepare: () => Effect.succeed({}),
  after: () => Effect.void,
  isExpected: ({ signal }) => signal === "SIGKILL"
}

/** Requests at once. */
const clients = 8

/** One acknowledged payment in so many is paid. */
const payEvery = 8

/** Until nothing is due any more: an attempt that was cut off by a slow machine comes again after a minute. */
const settled = "3 minutes"

export interface Report extends Verdict {
  /** How many lives of the daemon ended at a moment of each kind. */
  readonly killed: Readonly<Partial<Record<Kind, number>>>
  /** Webhooks that came. */
  readonly arrivals: number
  /** Those among them that had come before. */
  readonly repeated: number
  /** Those that were unanswered when the daemon was killed. */
  readonly cutOff: number
  /** Orders whose answer never came, and that were placed again. */
  readonly unanswered: number
  readonly paid: number
}

/** One life of the daemon: counts what happens in it, and tells when its moment has come. */
class Life {
  readonly #moment: Moment | undefined
  readonly #come = Deferred.unsafeMake<void>(FiberId.none)
  readonly #held = new Map<string, number>()
  readonly #answered = new Set<string>()
  #seen = 0
  #arrived = 0
  #isListening = false
  #isOver = false

  /** Without a moment it is the last one, in which everything is answered. */
  constructor(moment?: Moment) {
    this.#moment = moment
  }

  /** The daemon is to be killed now. */
  readonly come = Effect.suspend(() => Deferred.await(this.#come))

  get isOver(): boolean {
    return this.#isOver
  }

  /** Webhooks that wait for their answer. */
  get held(): number {
    return [...this.#held.values()].reduce((sum, count) => sum + count, 0)
  }

  listens(): void {
    this.#isListening = true
  }

  end(): void {
    this.#isOver = true
  }

  acknowledged(): void {
    this.#happened("acknowledged")
  }

  /** A file of the daemon's has changed. */
  changed(): void {
    this.#happened(this.#isListening ? "written" : "starting")
  }

  /** A webhook has arrived. Returns whether to respond to it. */
  arrived({ path }: Received): boolean {
    this.#happened("arrived")
    const held = this.#held.get(path) ?? 0
    // A receiver that has responded to nothing since the start gets one delivery at a time.
    if (!this.#answered.has(path)) {
      this.#answered.add(path)
      return true
    }
    if (this.#moment === undefined || ++this.#arrived % this.#moment.holdEvery > 0 || held >= heldOfAPath) return true
    this.#held.set(path, held + 1)
    this.#happened("held")
    return false
  }

  #happened(kind: Kind): void {
    if (kind === this.#moment?.kind && ++this.#seen === this.#moment.n) Deferred.unsafeDone(this.#come, Effect.void)
  }
}

/** What the merchant knows, over all lives. */
class Book {
  readonly acknowledged: Array<PaymentObject> = []
  readonly paid = new Set<string>()
  /** Orders without a response. */
  readonly open = new Set<string>()
  readonly problems: Array<string> = []
  orders = 0
  unanswered = 0
  cutOff = 0
}

interface Stage {
  readonly shop: Shop
  readonly book: Book
  readonly pay: (payment: PaymentObject) => void
  readonly ending: Ending
}

/** Starts a life: what arrives and what is written is counted from here on. */
const begin = ({ shop }: Stage, life: Life, env?: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    yield* shop.receiver.behave((request) => (life.arrived(request) ? 204 : Effect.never))
    yield* Effect.acquireRelease(
      Effect.sync(() => watch(shop.installation.folder, () => life.changed())),
      (watcher) => Effect.sync(() => watcher.close())
    )
    return yield* start(shop, env)
  })

const order =
  ({ book, pay, shop }: Stage, life: Life, url: string) =>
  (merchantRef: string) =>
    Effect.gen(function* () {
      if (life.isOver) return
      const answer = Option.getOrUndefined(yield* place(shop, url, merchantRef))
      // A daemon that stops says so to a client that comes too late.
      if (answer === undefined || (life.isOver && answer.status === 503)) return void book.unanswered++
      if (answer.status !== 201) return void book.problems.push(`${merchantRef} was answered ${answer.body}`)
      const payment = JSON.parse(answer.body) as PaymentObject
      book.open.delete(merchantRef)
      if (book.acknowledged.push(payment) % payEvery === 0) {
        book.paid.add(payment.id)
        pay(payment)
      }
      life.acknowledged()
    })

/** Places all open orders, those without a response first. */
const placeAll = (stage: Stage, life: Life, url: string) =>
  Effect.forEach([...stage.book.open], order(stage, life, url), { concurrency: clients, discard: true })

/** Where it listens; undefined where it ends before. */
const untilListening = (daemon: Running) => Effect.catchAllCause(listening(daemon), () => Effect.succeed(undefined))

/** Puts load on a daemon until its moment has come: at the latest when there is no load any more. */
const load = (stage: Stage, life: Life, daemon: Running) =>
  Effect.gen(function* () {
    const { book } = stage
    const url = yield* untilListening(daemon)
    if (url === undefined) return Fiber.void
    life.listens()
    while (book.open.size < ordersOfALife) book.open.add(`order ${++book.orders}`)
    return yield* Effect.fork(placeAll(stage, life, url))
  })

const liveAndDie = (stage: Stage, moment: Moment, n: number) =>
  Effect.gen(function* () {
    const { book, ending, shop } = stage
    const life = new Life(moment)
    const daemon = yield* begin(stage, life, yield* ending.prepare(shop.installation, n))
    const placed =
      moment.kind === "starting"
        ? yield* Effect.as(Effect.raceFirst(life.come, untilListening(daemon)), Fiber.void)
        : yield* load(stage, life, daemon)
    // Files change as often as the system tells, which may be less often than they do.
    const isOut = moment.kind === "written" || moment.kind === "starting" ? Fiber.await(placed) : Effect.never
    yield* Effect.raceAll([life.come, isOut, daemon.ended])
    life.end()
    book.cutOff += life.held
    const ended = yield* daemon.end(ending.signal)
    if (!ending.isExpected(ended)) {
      book.problems.push(`the daemon ended by itself (${ended.signal ?? ended.code}):\n${takeStories().at(-1)}`)
    }
    yield* Fiber.join(placed)
    yield* ending.after(shop.installation)
  }).pipe(Effect.scoped)

/** A life to its end: what is open is placed, and everything arrives that is owed. */
const liveOn = (stage: Stage) =>
  Effect.gen(function* () {
    const { book, shop } = stage
    const life = new Life()
    const daemon = yield* begin(stage, life)
    yield* placeAll(stage, life, yield* listening(daemon))
    const underWay = reading(shop.installation.database, (database) =>
      database
        .prepare(
          "SELECT 1 FROM deliveries WHERE done_at IS NULL UNION ALL SELECT 1 FROM payments WHERE status = ? LIMIT 1"
        )
        .all("detecting")
    )
    const confirmed = reading(shop.installation.database, (database) =>
      database.prepare("SELECT 1 FROM payments WHERE status = 'confirmed'").all()
    )
    const isDone = Effect.zipWith(
      underWay,
      confirmed,
      (rows, { length }) => rows.length === 0 && length === book.paid.size
    )
    yield* Effect.repeat(isDone, { until: (done) => done, schedule: Schedule.spaced("50 millis") }).pipe(
      Effect.timeoutOption(settled)
    )
    const { code } = yield* daemon.end("SIGTERM")
    if (code !== 0) book.problems.push(`the last stop ended with ${code}:\n${takeStories().at(-1)}`)
  }).pipe(Effect.scoped)

/**
 * Ends the daemon again and again, at the moments of the seed, while payments are made and paid and webhooks are
 * answered or not; lets it live at last, and judges what it has left behind.
 */
export const crashes = (kills: number, seed: number, ending: Ending = killed): Effect.Effect<Report> =>
  Effect.gen(function* () {
    const shop = yield* open
    const payer = yield* makePayer(shop)
    const book = new Book()
    const stage: Stage = { shop, book, pay: payer.pay, ending }
    const plan = yield* moments(kills, seed)
    const lives = Effect.zipRight(
      Effect.forEach(plan, (moment, n) => liveAndDie(stage, moment, n), { concurrency: 1, discard: true }),
      liveOn(stage)
    )
    yield* Effect.raceFirst(lives, payer.run)

    const arrivals = yield* shop.receiver.all
    const { acknowledged, cutOff, orders, paid, problems, unanswered } = book
    const { secrets } = shop
    const verdict = yield* judge(shop.installation.database, { acknowledged, arrivals, orders, paid, secrets })
    const distinct = new Set(arrivals.map(({ headers, path }) => `${headers["webhook-id"]} ${path}`)).size
    const lived: Partial<Record<Kind, number>> = {}
    for (const { kind } of plan) lived[kind] = (lived[kind] ?? 0) + 1
    return {
      ...verdict,
      problems: [...problems, ...verdict.problems],
      killed: lived,
      arrivals: arrivals.length,
      repeated: arrivals.length - distinct,
      cutOff,
      unanswered,
      paid: paid.size
    }
  }).pipe(Effect.scoped, Effect.orDie)
