import { Cause, Context, Effect, Exit, type Fiber, HashMap, Layer, Logger, Option, Random, Redacted } from "effect"
import { AddressHistory } from "../../src/Chains/balances/AddressHistory.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { Tokens } from "../../src/Chains/ledger/Tokens.ts"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import { Networks } from "../../src/Chains/providers/Networks.ts"
import { Rpc, type RpcClient } from "../../src/Chains/rpc/Rpc.ts"
import { defectMessage } from "../../src/Chains/watcher/Watcher.ts"
import { Chains } from "../../src/Chains.ts"
import type { Owner } from "../../src/Domain/Account.ts"
import type { EventKind } from "../../src/Domain/Event.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import type { CreatePayment, Payment } from "../../src/Domain/Payment.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { Addresses } from "../../src/Payments/addresses/Addresses.ts"
import { BlindJump } from "../../src/Payments/addresses/numbering.ts"
import { accept } from "../../src/Payments/decisions/accept.ts"
import { noteRefund } from "../../src/Payments/decisions/refund.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { Payments } from "../../src/Payments.ts"
import { Prices } from "../../src/Quotes/Prices.ts"
import { Quotes } from "../../src/Quotes.ts"
import { Secrets } from "../../src/Secrets.ts"
import { MasterKey, Settings, type SettingsShape } from "../../src/Settings.ts"
import type { Db } from "../../src/Sql/Db.ts"
import { makeWriter, type Transactions } from "../../src/Sql/Writer.ts"
import { Reader, StoreUnavailable, Writer } from "../../src/Sql.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import { DeliveryBell } from "../../src/Webhooks/queue/DeliveryBell.ts"
import { SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import {
  type AttemptOutcome,
  DeliveryClient,
  type DeliveryRequest
} from "../../src/Webhooks/transport/DeliveryClient.ts"
import { NameNotResolved, Resolver, TargetGuard } from "../../src/Webhooks/transport/TargetGuard.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import type { Store } from "./Store.ts"
import { VirtualTime } from "./VirtualTime.ts"

export const merchant: Owner = { account: AccountId.make("default"), mode: "test" }

/** The environment of one life of the daemon. */
export interface Surroundings {
  readonly settings: SettingsShape
  readonly store: Store
  readonly clientOf: (url: string, isAlive: () => boolean, time: () => number) => RpcClient
  /** Whether something is under way outside of the process that time waits for. */
  readonly isBusy?: () => boolean
  readonly deliver: (request: DeliveryRequest, now: number) => Effect.Effect<AttemptOutcome>
  /** After each commit, before it is announced. Whether the process dies before it, or right after. */
  readonly beforeCommit: () => boolean
  readonly afterCommit: () => boolean
}

const gone = new StoreUnavailable({ code: "GONE", message: "this life of the daemon is over" })
/** Virtual time that the fibers of a dead process have to let go of what they hold: of files, above all. */
const burial = 60_000
/** Virtual time in which a request is answered: a payment's waits for a look at its chain where that is not read often. */
const answerPatience = 2_500
/** Addresses that are skipped where continuity is not proven: more than a seed hands out, and few enough for no thread. */
const jump = 40

/** A request to the daemon. */
type Asked =
  | Chains
  | Networks
  | Outbox
  | Payments
  | Reader
  | Settings
  | Settlement
  | WatchedAddresses
  | Webhooks
  | Writer

/** One process of the daemon, from its start to its end, on a database file that outlives it. */
export class Life {
  readonly time: VirtualTime
  readonly #surroundings: Surroundings
  readonly #seed: string
  #died = false
  #services: Context.Context<Asked> | undefined
  #root: Fiber.RuntimeFiber<unknown, unknown> | undefined
  /** Why it ended by itself. */
  failure: string | undefined

  constructor(surroundings: Surroundings, seed: string, now: number) {
    this.#surroundings = surroundings
    this.#seed = seed
    this.time = new VirtualTime(now, surroundings.isBusy)
  }

  get died(): boolean {
    return this.#died
  }

  /** Begins; `watches`: with all its workers, and not the dispatcher alone. */
  async start(watches = true): Promise<void> {
    const workers = Effect.gen(this, function* () {
      const chains = yield* Chains
      const settlement = yield* Settlement
      const dispatcher = yield* Dispatcher
      this.#services = yield* Effect.context<Asked>()
      const watching = watches ? [chains.run, settlement.expire] : []
      yield* Effect.all([...watching, dispatcher.run], { concurrency: "unbounded", discard: true })
    })
    const root = this.#run(Effect.provide(workers, this.#layer))
    this.#root = root
    root.addObserver((exit) => {
      if (!this.#died)
        this.failure = Exit.isFailure(exit) ? Cause.pretty(exit.cause, { renderErrorCause: true }) : "the workers ended"
    })
    await this.time.rest()
  }

  #run<A, E>(effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> {
    return Effect.runFork(
      effect.pipe(
        Effect.withClock(this.time.clock),
        Effect.withRandom(Random.make(this.#seed)),
        Effect.withTracerEnabled(false)
      ),
      { scheduler: this.time.scheduler }
    )
  }

  /** What was acknowledged; undefined when the process died meanwhile. */
  async #ask<A, E>(effect: Effect.Effect<A, E, Asked>): Promise<A | undefined> {
    const services = this.#services
    if (services === undefined || this.#died) return undefined
    let exit: Exit.Exit<A, E> | undefined
    this.#run(Effect.provide(effect, services)).addObserver((found) => {
      exit = found
    })
    await this.time.rest()
    for (const until = this.time.now + answerPatience; exit === undefined && !this.#died && this.time.now < until; ) {
      await this.time.passTo(Math.min(this.time.now + 100, until))
    }
    if (this.#died) return undefined
    if (exit === undefined) throw new Error("a request was not answered in time")
    if (Exit.isFailure(exit)) throw new Error(Cause.pretty(exit.cause))
    return exit.value
  }

  create(request: CreatePayment, owner: Owner): Promise<Payment | undefined> {
    const created = Effect.flatMap(Payments, (payments) => payments.create(owner, request))
    return this.#ask(Effect.map(created, ({ payment }) => payment))
  }

  /** Undefined too where the payment is no longer pending. */
  cancel(id: string, owner: Owner) {
    return this.#ask(Effect.option(Effect.flatMap(Payments, (payments) => payments.cancel(owner, id))))
  }

  /** Refunds money of a payment, or of an exception. Undefined too where that is refused. */
  refund(id: string, amount: bigint) {
    return this.#ask(Effect.option(noteRefund(id, undefined, { amount })))
  }

  /** Accepts the money that came for a payment, or the money of an exception. Undefined too where that is refused. */
  accept(id: string) {
    return this.#ask(Effect.option(accept(id, undefined, {})))
  }

  health() {
    return this.#ask(Effect.flatMap(Chains, (chains) => chains.health))
  }

  register(url: string, events: ReadonlyArray<EventKind>) {
    const secret = Redacted.make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    return this.#ask(Effect.flatMap(Webhooks, (webhooks) => webhooks.create(merchant, { url, events, secret })))
  }

  /** From here on the process has no visible effect. */
  die(): void {
    this.#died = true
    this.time.stop()
  }

  /** Dies, if it has not, and lets go of what it held. */
  async bury(): Promise<void> {
    this.die()
    this.time.resume()
    const root = this.#root
    if (root === undefined) return
    let isOver = false
    root.addObserver(() => {
      isOver = true
    })
    root.unsafeInterruptAsFork(root.id())
    for (let waited = 0; !isOver && waited < burial; waited += 1_000) await this.time.passTo(this.time.now + 1_000)
    if (!isOver) throw new Error("a life of the daemon does not end")
  }

  /** The database as a process that may die sees it: nothing can be asked of it then. */
  #mortal(db: Db): Db {
    const unlessGone = this.#unlessGone
    return {
      all: (sql, params) => unlessGone(db.all(sql, params)),
      get: (sql, params) => unlessGone(db.get(sql, params)),
      run: (sql, params) => unlessGone(db.run(sql, params)),
      runEach: (sql, rows) => unlessGone(db.runEach(sql, rows)),
      writes: db.writes,
      changes: unlessGone(db.changes)
    }
  }

  readonly #unlessGone = <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
    Effect.suspend(() => (this.#died ? Effect.fail(gone) : effect))

  #commit({ commit, rollback }: Transactions) {
    return Effect.suspend(() => {
      const { afterCommit, beforeCommit } = this.#surroundings
      if (beforeCommit()) {
        this.die()
        return Effect.zipRight(rollback, gone)
      }
      return Effect.zipRight(
        commit,
        Effect.suspend(() => {
          if (!afterCommit()) return Effect.void
          this.die()
          return gone
        })
      )
    })
  }

  get #store() {
    const { reader, transactions } = this.#surroundings.store
    const mortal: Transactions = {
      begin: this.#unlessGone(
        Effect.map(transactions.begin, (session) => {
          const one = this.#mortal(session())
          return transactions.isFar ? () => this.#mortal(session()) : () => one
        })
      ),
      commit: this.#unlessGone(this.#commit(transactions)),
      rollback: this.#unlessGone(transactions.rollback),
      isFar: transactions.isFar
    }
    return Layer.scopedContext(
      Effect.map(makeWriter(mortal), (writer) =>
        Context.make(Reader, this.#mortal(reader)).pipe(Context.add(Writer, writer))
      )
    )
  }

  /** `App.ts` with what is outside of the process in this one. */
  get #layer() {
    const { clientOf, deliver, settings } = this.#surroundings
    const isAlive = () => !this.#died
    const rpc = Layer.succeed(Rpc, { client: (url) => clientOf(Redacted.value(url), isAlive, () => this.time.now) })
    const receiver = Layer.succeed(DeliveryClient, {
      post: (request) => Effect.suspend(() => (this.#died ? Effect.never : deliver(request, this.time.now)))
    })
    return Payments.layer.pipe(
      Layer.provideMerge(Layer.mergeAll(Addresses.layer, noQuotes)),
      Layer.provideMerge(Layer.succeed(BlindJump, jump)),
      Layer.provideMerge(Layer.mergeAll(Chains.layer, noHistory, Prices.layer)),
      Layer.provideMerge(Networks.layer),
      Layer.provideMerge(Layer.mergeAll(settlementLayer, WatchedAddresses.layer, Tokens.layer, rpc)),
      Layer.provideMerge(Layer.mergeAll(Dispatcher.layer, Webhooks.layer)),
      Layer.provideMerge(
        Layer.mergeAll(Layer.provideMerge(Outbox.layer, DeliveryBell.layer), receiver, SigningKeys.layer)
      ),
      Layer.provideMerge(TargetGuard.layer),
      Layer.provideMerge(noNames),
      Layer.provideMerge(Secrets.layer),
      Layer.provideMerge(this.#store),
      Layer.provideMerge(Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32).fill(7)))),
      Layer.provideMerge(Layer.succeed(Settings, settings)),
      Layer.provide(
        Logger.replace(
          Logger.defaultLogger,
          Logger.make(({ annotations, message }) => {
            // What a watcher puts down to a provider would be a fault of its own here: the models' answers are well formed.
            if (String(message) === defectMessage)
              this.failure = String(Option.getOrUndefined(HashMap.get(annotations, "cause")))
          })
        )
      )
    )
  }
}

const noNames = Layer.succeed(Resolver, { resolve: () => new NameNotResolved({ reason: "ENOTFOUND" }) })
const noQuotes = Layer.succeed(Quotes, {
  create: () => Effect.dieMessage("nobody asks for a quote"),
  get: () => Effect.dieMessage("nobody asks for a quote"),
  lock: () => Effect.dieMessage("nobody asks for a quote"),
  priceIn: () => Effect.dieMessage("nobody asks for a quote"),
  feeOf: () => Effect.dieMessage("nobody asks for a quote"),
  keep: () => Effect.dieMessage("nobody asks for a quote")
})
const noHistory = Layer.succeed(AddressHistory, { vet: () => Effect.succeed([]) })
