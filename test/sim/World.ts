import { rmSync } from "node:fs"
import { Duration } from "effect"
import type { RpcClient } from "../../src/Chains/rpc/Rpc.ts"
import type { Owner } from "../../src/Domain/Account.ts"
import { EventKind } from "../../src/Domain/Event.ts"
import type { CreatePayment, Payment } from "../../src/Domain/Payment.ts"
import type { SettingsShape } from "../../src/Settings.ts"
import { testSettings } from "../lib/settings.ts"
import { Dice } from "./Dice.ts"
import { Ledger } from "./Ledger.ts"
import { Life, merchant } from "./Life.ts"
import { epoch, type Place } from "./Place.ts"
import { settingsOf, settleGrace, urlOf } from "./plans.ts"
import { Receiver } from "./Receiver.ts"
import type { ExceptionRow, PaymentRow } from "./rows.ts"
import type { SimProvider } from "./SimProvider.ts"
import { engine, type Store } from "./Store.ts"
import type { Conditions } from "./steps.ts"
import { isRight, type Strictness, usualStrictness, Violation } from "./watched.ts"

const second = 1_000
const hour = 3_600 * second
const endpoint = "https://192.0.1.1/hook"

/** Shorter than a provider of a story is gone, which has denied by then what another one has invented. */
const solePatience = Duration.minutes(1)

/** What lies between the daemon and its providers where that is more than a call within this process. */
export interface Between {
  /** How a provider is reached, whose own client is given. */
  readonly reach: (provider: SimProvider, client: RpcClient) => RpcClient
  /** Whether something is on its way. */
  readonly isBusy: () => boolean
}

const nothingBetween: Between = { reach: (_, client) => client, isBusy: () => false }

/** When the process dies: before or after the commit of this number, and for how many milliseconds. */
interface Crash {
  readonly when: "before" | "after"
  readonly at: number
  readonly down: number
}

/** The chains, their providers, the merchant, and one life of the daemon after another on one database file. */
export class World {
  readonly places: ReadonlyArray<Place>
  readonly receiver = new Receiver()
  readonly ledger: Ledger
  readonly path: string
  readonly #seed: string
  readonly #settings: SettingsShape
  readonly #between: Between
  /** Acknowledged requests. */
  readonly #payments = new Set<string>()
  readonly #addresses = new Set<string>()
  /** Payments that were made right after a restart, maybe before the daemon has looked at their chain. */
  readonly hurried = new Set<string>()
  /** Payments by the names that steps have for them. */
  readonly names = new Map<string, string>()
  /** Payments that were lost with the newest files. */
  readonly lost: Array<PaymentRow> = []
  #clockRightAt = Number.POSITIVE_INFINITY
  #skew = 0
  #wasBehind = false
  #isElsewhere = false
  #isKept = false
  /** The copy has taken the place of the files since it was made. */
  #isRestored = false
  #store: Store
  #life: Life
  #lives = 0
  #begun = epoch
  #created = 0
  #commits = 0
  #crash: Crash | undefined
  #violation: unknown
  #watches = true
  readonly #isPatient: boolean

  /** Begins with a copy of `template`, an empty database. */
  constructor(
    seed: string,
    places: ReadonlyArray<Place>,
    template: string,
    path: string,
    strict: Readonly<Strictness> = usualStrictness,
    { patience = solePatience, requires }: Conditions = {},
    between: Between = nothingBetween
  ) {
    engine.begin(path, template)
    this.path = path
    this.#seed = seed
    this.#isPatient = new Dice(`patience ${seed}`).chance(0.25)
    this.#between = between
    this.places = places
    const base = testSettings(path)
    this.#settings = {
      ...base,
      payments: {
        ...base.payments,
        settleGrace: Duration.millis(settleGrace),
        clockTolerance: Duration.minutes(15),
        soleProviderPatience: patience,
        // No address has a history here, and each life would derive as many as are asked about.
        lookAhead: 1
      },
      webhooks: { ...base.webhooks, allowTargets: ["192.0.1.0/24"], concurrency: 8 },
      chains: places.map(({ plan, providers }) => settingsOf(plan, providers.length, requires))
    }
    this.ledger = new Ledger(path, new Map(places.map((place) => [place.plan.chain, place.watched])), requires, strict)
    this.#store = engine.open(path)
    this.#life = this.#newLife(epoch)
  }

  /** Unix milliseconds. */
  get now(): number {
    return this.#life.time.now
  }

  /** When the daemon has started last, Unix milliseconds. */
  get begun(): number {
    return this.#begun
  }

  #newLife(now: number): Life {
    const byUrl = new Map(
      this.places.flatMap(({ plan, providers }) => providers.map((one, i) => [urlOf(plan, i), one] as const))
    )
    const life = new Life(
      {
        settings: this.#settings,
        store: this.#store,
        clientOf: (url, isAlive, time) => {
          const provider = byUrl.get(url)
          if (provider === undefined) throw new Error(`no provider at ${url}`)
          return this.#between.reach(provider, provider.client(isAlive, time))
        },
        isBusy: this.#between.isBusy,
        deliver: this.receiver.take,
        beforeCommit: () => {
          this.#commits++
          return this.#crash?.when === "before" && this.#commits >= this.#crash.at
        },
        afterCommit: () => {
          try {
            this.ledger.check()
          } catch (violation) {
            this.#violation ??= violation
            return true
          }
          return this.#crash?.when === "after" && this.#commits >= this.#crash.at
        }
      },
      `${this.#seed} ${this.#lives++}`,
      now
    )
    life.time.skew = this.#skew
    this.#begun = now
    return life
  }

  /** By how many milliseconds the system's clock is ahead. */
  get skew(): number {
    return this.#skew
  }

  /** Whether the system's clock was behind at some time. */
  get wasBehind(): boolean {
    return this.#wasBehind
  }

  /** The system's clock is so many milliseconds ahead, until the time `until`. */
  setClock(skew: number, until = Number.POSITIVE_INFINITY): void {
    this.#wasBehind ||= skew < 0
    this.#skew = skew
    this.#clockRightAt = until
    this.#life.time.skew = skew
  }

  /** The daemon's first start. */
  async start(): Promise<void> {
    await this.#life.start()
    this.#throwIfBroken()
    await this.#life.register(endpoint, EventKind.literals)
    await this.pass(2 * second)
  }

  async #bury(): Promise<void> {
    await this.#life.bury()
    this.#store.abandon()
  }

  /** Ends the process, if it has not ended, and starts it again after `down` milliseconds. */
  async restart(down: number): Promise<void> {
    this.#crash = undefined
    const { now } = this
    await this.#bury()
    this.#throwIfBroken()
    this.#life = this.#newLife(now + down)
    for (const { chain } of this.places) chain.mineUntil(this.now)
    await this.#life.start(this.#watches)
    this.#throwIfBroken()
  }

  /** What the daemon keeps in a folder that backups leave out. */
  get #marks(): string {
    return this.#settings.database.markFolder
  }

  /** Copies the files, as they are between two transactions. */
  copy(): void {
    engine.keep(this.path)
    this.#isKept = true
    this.#isRestored = false
  }

  /**
   * Ends the process, has the copy take the place of the files, and starts it again after `down` milliseconds.
   *
   * @param elsewhere on another machine, which has nothing but the copy
   */
  async restore(elsewhere: boolean, down: number): Promise<void> {
    if (!this.#isKept) return
    this.#crash = undefined
    const { now } = this
    await this.#bury()
    this.#throwIfBroken()
    const before = this.ledger.payments()
    this.#store.close()
    // Two machines that begin with one copy cannot know of each other: the first restore of a copy may be elsewhere, once.
    if (elsewhere && !this.#isElsewhere && !this.#isRestored) {
      rmSync(this.#marks, { force: true, recursive: true })
      this.#isElsewhere = true
    }
    this.#isRestored = true
    engine.putBack(this.path)
    this.#store = engine.open(this.path)
    this.ledger.reopen()
    const left = new Set(this.ledger.payments().map(({ id }) => id))
    for (const payment of before) {
      if (left.has(payment.id)) continue
      this.#payments.delete(payment.id)
      this.lost.push(payment)
    }
    this.receiver.restored(this.ledger.deliveries())
    this.#life = this.#newLife(now + down)
    for (const { chain } of this.places) chain.mineUntil(this.now)
    await this.#life.start(this.#watches)
    this.#throwIfBroken()
  }

  /** The process dies with the commit that is `commits` ahead. */
  crashAt(when: "before" | "after", commits: number, down: number): void {
    this.#crash = { when, at: this.#commits + commits, down }
  }

  #throwIfBroken(): void {
    if (this.#violation !== undefined) throw this.#violation
    if (this.#life.failure !== undefined) throw new Violation(`the daemon stopped: ${this.#life.failure}`)
  }

  /** Lets time pass up to `until`, Unix milliseconds, through whatever crash comes meanwhile. */
  async passTo(until: number): Promise<void> {
    if (this.#clockRightAt <= until) {
      const right = Math.max(this.#clockRightAt, this.now)
      this.#clockRightAt = Number.POSITIVE_INFINITY
      await this.passTo(right)
      this.setClock(0)
    }
    while (true) {
      await this.#life.time.passTo(until)
      this.#throwIfBroken()
      if (!this.#life.died) break
      await this.restart(this.#crash?.down ?? 0)
    }
    for (const { chain } of this.places) chain.mineUntil(this.now)
  }

  /** Lets time pass up to the next thing that someone waits for. */
  next(): Promise<void> {
    return this.passTo(this.#life.time.nextAt ?? this.now)
  }

  /** What the daemon says of its chains. */
  health() {
    return this.#life.health()
  }

  pass(millis: number): Promise<void> {
    return this.passTo(this.now + millis)
  }

  /** Asks for a payment; undefined when the process dies over it. */
  async create(
    request: Omit<CreatePayment, "merchantRef" | "metadata">,
    owner: Owner = merchant
  ): Promise<Payment | undefined> {
    const whole = { ...request, merchantRef: `order ${this.#created++}`, metadata: "{}" }
    const payment = await this.#life.create(whole, owner)
    this.#throwIfBroken()
    if (payment === undefined) return undefined
    if (this.#addresses.has(payment.address)) throw new Violation(`${payment.address} was handed out twice`)
    this.#addresses.add(payment.address)
    this.#payments.add(payment.id)
    if (this.#begun > epoch && this.now - this.#begun < 30 * second) this.hurried.add(payment.id)
    return payment
  }

  /** Asks to cancel a payment. */
  async cancel(id: string): Promise<void> {
    await this.#life.cancel(id, merchant)
    this.#throwIfBroken()
  }

  /** Says that so much of what counts for an open payment was sent back. */
  async refund(id: string, amount: bigint): Promise<void> {
    await this.#life.refund(id, amount)
    this.#throwIfBroken()
  }

  /** A person accepts what came for a payment, though it is less, late or something else. */
  accept(id: string): Promise<void> {
    return this.#accepting(id, () => this.#life.accept(id))
  }

  /** The same for the money of one exception. */
  acceptException({ id, payment_id }: ExceptionRow): Promise<void> {
    return this.#accepting(payment_id, () => this.#life.accept(id))
  }

  /** Says that so much of an exception's money was sent back. */
  async refundException({ id }: ExceptionRow, amount: bigint): Promise<void> {
    await this.#life.refund(id, amount)
    this.#throwIfBroken()
  }

  /** The ledger has to know that a person confirms a payment: less than its amount is enough then. */
  async #accepting(payment: string | null, ask: () => Promise<unknown>): Promise<void> {
    this.ledger.accepting = payment
    await ask()
    this.ledger.accepting = null
    this.#throwIfBroken()
  }

  /** Everything works from now on. */
  async heal(): Promise<void> {
    for (const { providers } of this.places) for (const provider of providers) provider.heal()
    this.setClock(0)
    this.#crash = undefined
    if (this.#life.died) await this.restart(0)
  }

  /** Puts as many blocks onto everything as is ever asked for, and lets the daemon read them. */
  confirmAll(check?: () => void, patience = 0): Promise<void> {
    for (const { chain, plan } of this.places) chain.mineMany(plan.confirmations + 6, this.now)
    return this.becomeQuiet(check, patience)
  }

  /**
   * Lets the daemon catch up with chains that stand still, and do what else it has to, for `patience` milliseconds, or until
   * `check`, if there is one, finds nothing wrong. Every fourth world waits a minute and a half anyway: it may become wrong.
   */
  async becomeQuiet(check?: () => void, patience = 0): Promise<void> {
    for (const { chain } of this.places) {
      chain.mineUntil(this.now)
      chain.frozen = true
    }
    // Days of blocks take longer than minutes of them.
    const rounds = 60 + this.ledger.lag() / 50
    for (let waited = 0; waited < rounds; waited++) {
      await this.pass(5 * second)
      if (waited > 0 && this.ledger.isCaughtUp()) break
    }
    // Maintenance has its own interval, and what it finds has to be corroborated in the next tick. A
    // payment whose end waits for deep blocks to be read again, a minute, is searched for again within another minute.
    const longest = Math.max(150 * second, patience)
    const least = this.#isPatient || check === undefined ? Math.max(90 * second, patience) : 0
    for (let waited = 15 * second; waited <= longest; waited += 15 * second) {
      await this.pass(15 * second)
      if (waited >= least && (check === undefined || isRight(check))) break
    }
    for (const { chain } of this.places) chain.frozen = false
  }

  /** The end: delivers everything that is still owed, and checks what the merchant received. */
  async finish(): Promise<void> {
    this.receiver.answer = "works"
    if (this.ledger.isOwed()) {
      // A day of retries passes in no time while no one watches any chain.
      this.#watches = false
      for (const { chain } of this.places) chain.frozen = true
      await this.restart(0)
      await this.pass(30 * hour)
    }
    await this.#bury()
    const known = new Set(this.ledger.payments().map(({ id }) => id))
    for (const id of this.#payments) if (!known.has(id)) throw new Violation(`${id} was acknowledged, and is lost`)
    this.receiver.check(this.ledger.deliveries(), this.ledger.decided)
  }

  async end(): Promise<void> {
    try {
      await this.#bury()
    } finally {
      this.#store.close()
      this.ledger.close()
      rmSync(this.#marks, { force: true, recursive: true })
      engine.remove(this.path)
    }
  }
}
