import { afterAll, beforeAll, expect, it } from "vitest"
import type { ChainName } from "../../src/Domain/Chain.ts"
import type { PaymentCurrency } from "../../src/Domain/Currency.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import { Dice } from "./Dice.ts"
import type { Lie } from "./Lie.ts"
import { Place } from "./Place.ts"
import { type Order, pay as payBy, planOf, spend } from "./payWays.ts"
import type { PaymentRow } from "./rows.ts"
import { type FaultKind, type SimProvider, lies as silentFaults, type Traits } from "./SimProvider.ts"
import { engine } from "./Store.ts"
import { Stage } from "./simulate.ts"
import type { Conditions } from "./steps.ts"
import { type Transaction, transaction } from "./transactions.ts"
import type { World } from "./World.ts"
import { Violation } from "./watched.ts"

// Told stories: tests of the whole daemon between a chain and its providers, as lists of steps. Nothing in them is left to
// dice. While a story goes on, the ledger compares the database with the chain after each commit.

/** The chains of a story and what their providers are like. */
interface Cast extends Pick<Conditions, "patience" | "providers" | "requires"> {
  /** Steps that name none are about the first one. */
  readonly chains?: ReadonlyArray<ChainName>
  /** Of each provider. */
  readonly traits?: Partial<Traits>
}

/** The chain that a step is about, where it is not the first one. */
interface On {
  readonly on?: ChainName
}

/** What a step does, and how a failure names it. */
export interface Told {
  readonly says: string
  readonly run: (story: Story) => unknown
}

const second = 1_000

/** A story while it is told. */
export class Story {
  /** The transactions by the names that steps have for them. */
  readonly #sent = new Map<string, Transaction>()
  /** Providers that were to leave out logs. */
  readonly silenced = new Set<SimProvider>()

  constructor(readonly world: World) {}

  place(on?: ChainName): Place {
    const place = this.world.places.find(({ plan }) => on === undefined || plan.chain === on)
    if (place === undefined) throw new Error(`the story is without ${on}`)
    return place
  }

  provider(index: number, on?: ChainName): SimProvider {
    const provider = this.place(on).providers[index]
    if (provider === undefined) throw new Error(`there is no provider ${index}`)
    return provider
  }

  payment(name: string): PaymentRow {
    const id = this.world.names.get(name)
    const payment = this.world.ledger.payments().find((one) => one.id === id)
    if (payment === undefined) throw new Error(`there is no payment ${name}`)
    return payment
  }

  /** Whatever is sent or invented under one name has one hash. */
  sign(over: Partial<Transaction>, as = `number ${this.#sent.size}`): Transaction {
    const signed = transaction(as, over)
    this.#sent.set(as, signed)
    return signed
  }

  /** What brings an amount to a payment. */
  paying(name: string, amount: number, { as, other = 0, way = "plain" }: How = {}) {
    const payment = { ...this.payment(name), amount: String(amount) }
    const plans = this.world.places.map(({ plan }) => plan)
    const order = { way, part: "all", other } as const
    const { chain, transaction } = payBy("", payment, order, 0n, this.world.ledger.payments(), plans)
    const { hash: _, ...over } = transaction
    return { chain, transaction: this.sign(over, as) }
  }

  /** The merchant takes all coins from a payment's address, and what is about to come. */
  collect(name: string, coming: bigint): void {
    const payment = this.payment(name)
    const balance = this.world.ledger.balanceOf(payment.chain, payment.address) + coming
    const sent = spend(`${name} is collected`, payment, balance, true)
    if (sent === undefined) throw new Error(`${name} does not hold the fee`)
    this.place(sent.chain).chain.submit(sent.transaction)
  }

  hashOf(as: string): string {
    const sent = this.#sent.get(as)
    if (sent === undefined) throw new Error(`nothing was sent as ${as}`)
    return sent.hash
  }

  calls(method: RegExp, provider: SimProvider): number {
    return [...provider.calls].filter(([name]) => method.test(name)).reduce((sum, [, count]) => sum + count, 0)
  }

  /** A lie that no answer shows leaves a story of nothing. */
  checkTold(): void {
    const all = this.world.places.flatMap(({ providers }) => providers)
    const silent = all.filter((one) => this.silenced.has(one) && one.withheld.size === 0)
    expect([
      ...all.flatMap(({ traits, untold }) => [...untold.values()].map((says) => `${traits.host} never ${says}`)),
      ...silent.map(({ traits }) => `${traits.host} never left out a log`)
    ]).toEqual([])
  }
}

const shown = (value: unknown): string =>
  JSON.stringify(value, (_, one) => (one instanceof RegExp || typeof one === "bigint" ? String(one) : one)) ?? ""

const told = (does: string, args: ReadonlyArray<unknown>, run: Told["run"]): Told => ({
  says: `${does}(${args.map(shown).join(", ")})`,
  run
})

/** Steps, so many times. */
export const repeat = (times: number, ...steps: ReadonlyArray<Told>): ReadonlyArray<Told> =>
  Array.from({ length: times }, () => steps).flat()

/** Time passes, in seconds, and blocks come as they do on these chains. */
export const wait = (seconds: number): Told => told("wait", [seconds], ({ world }) => world.pass(seconds * second))

/** Asks for a payment: of 1,000 base units in USDC, for a minute. */
export const ask = (
  name: string,
  over: On & {
    readonly amount?: number
    readonly currency?: PaymentCurrency
    /** Seconds. */
    readonly expiresIn?: number
    readonly account?: string
  } = {}
): Told =>
  told("ask", [name, over], async (story) => {
    const { account = "default", amount = 1_000, currency = "USDC", expiresIn = 60, on } = over
    const owner = { account: AccountId.make(account), mode: "test" } as const
    const { chain } = story.place(on).plan
    const payment = await story.world.create({ amount: BigInt(amount), currency, chain, expiresIn }, owner)
    if (payment === undefined) throw new Error("the daemon is dead")
    story.world.names.set(name, payment.id)
  })

/** `way` and `other`: as in the steps of seeds; `as`: what other steps call the transaction. */
export type How = Partial<Pick<Order, "other" | "way">> & { readonly as?: string }

/** Somebody sends base units to a payment, which come with the next block. */
export const pay = (name: string, amount: number, how: How = {}): Told =>
  told("pay", [name, amount, how], (story) => {
    const { chain, transaction } = story.paying(name, amount, how)
    story.place(chain).chain.submit(transaction)
    if (how.way === "collected") story.collect(name, transaction.value)
  })

/** One transaction brings tokens to several payments. */
export const payEach = (...pays: ReadonlyArray<readonly [name: string, amount: number]>): Told =>
  told("payEach", pays, (story) => {
    const all = pays.map(([name, amount]) => story.paying(name, amount))
    const [first] = all
    if (first === undefined) return
    const logs = all.flatMap(({ transaction }) => transaction.logs)
    story.place(first.chain).chain.submit(story.sign({ ...first.transaction, logs }))
  })

/** Any other transaction. */
export const send = (
  make: (story: Story) => Partial<Transaction>,
  { as, on }: On & { readonly as?: string } = {}
): Told => told("send", [as, on], (story) => story.place(on).chain.submit(story.sign(make(story), as)))

/** The merchant takes all coins from a payment's address. */
export const collect = (name: string): Told => told("collect", [name], (story) => story.collect(name, 0n))

/** So many blocks come at once; they are read with the next poll. */
export const mine = (blocks: number, { on }: On = {}): Told =>
  told("mine", [blocks, on], (story) => story.place(on).chain.mineMany(blocks, story.world.now))

/**
 * Another branch takes the place of the last blocks, so many or down to the one with the transaction `from`, and grows
 * `grows` blocks beyond them. It has all their transactions but those in `without`.
 */
export const reorg = (
  over: On & {
    readonly depth?: number
    readonly from?: string
    readonly grows?: number
    readonly without?: ReadonlyArray<string>
  }
): Told =>
  told("reorg", [over], (story) => {
    const { chain } = story.place(over.on)
    const first = over.from && chain.inclusions.get(story.hashOf(over.from))?.at(-1)
    const depth = first ? chain.head.number - first.number + 1 : (over.depth ?? 1)
    const gone = (over.without ?? []).map((as) => story.hashOf(as))
    chain.reorg(depth, over.grows ?? 1, story.world.now, ({ hash }) => (gone.includes(hash) ? "never" : "again"))
  })

/** For how long something is wrong, in seconds, and on which chain. For ever, or until `heal`, where it is not said. */
interface During extends On {
  readonly seconds?: number
}

const endOf = ({ world }: Story, { seconds = Number.POSITIVE_INFINITY }: During) => world.now + seconds * second

/** A provider has a fault. */
export const fail = (
  provider: number,
  kind: FaultKind,
  { size = 1, ...during }: During & { readonly size?: number } = {}
): Told =>
  told("fail", [provider, kind, size, during], (story) => {
    const failing = story.provider(provider, during.on)
    failing.breaks(kind, size, endOf(story, during))
    if (silentFaults.has(kind) && kind !== "balancer") story.silenced.add(failing)
  })

/** What a lie needs to know of its story when it begins. */
export interface Liar {
  readonly story: Story
  readonly provider: SimProvider
  readonly place: Place
  /** The number of the next block. */
  readonly next: number
}

/** A lie of `lies.ts`, and how a failure names it. */
export interface ToldLie {
  readonly says: string
  readonly make: (liar: Liar) => Lie
}

/** A provider lies, whatever others do. */
export const lie = (provider: number, { make, says }: ToldLie, during: During = {}): Told =>
  told("lie", [provider, says, during], (story) => {
    const place = story.place(during.on)
    const liar = story.provider(provider, during.on)
    const next = place.chain.head.number + 1
    place.tellsAnyway(liar, make({ story, provider: liar, place, next }), says, endOf(story, during))
  })

/** A provider has no fault any more, and does not lie; all of them where none is named. */
export const heal = (provider?: number, { on }: On = {}): Told =>
  told("heal", [provider, on], (story) => {
    story.checkTold()
    const all = provider === undefined ? story.place(on).providers : [story.provider(provider, on)]
    for (const one of all) one.heal()
  })

/** The process ends, and starts so many seconds later. */
export const restart = (down = 1): Told => told("restart", [down], ({ world }) => world.restart(down * second))

/** The process dies before or after the next commit, and starts a second later. */
export const crash = (when: "before" | "after"): Told =>
  told("crash", [when], ({ world }) => world.crashAt(when, 1, second))

/** The system's clock is so many seconds ahead from now on, or behind. */
export const setClock = (ahead: number): Told =>
  told("setClock", [ahead], ({ world }) => world.setClock(ahead * second))

type States = Readonly<Record<string, string | RegExp>>

const stateOf = ({ amount_received, failure_reason, status }: PaymentRow) =>
  [status, failure_reason, amount_received].filter((part) => part !== null).join(" ")

const expectStates = (story: Story, states: States): void => {
  const found = Object.keys(states).map((name) => [name, stateOf(story.payment(name))])
  const wanted = Object.entries(states).map(([name, state]) => [
    name,
    typeof state === "string" ? state : expect.stringMatching(state)
  ])
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted))
}

/** Statuses of payments, each with its reason and what was received, as far as it has them: "confirmed 1000". */
export const see = (states: States): Told => told("see", [states], (story) => expectStates(story, states))

/** All exceptions, oldest first: "late 1000 USDC". */
export const seeExceptions = (...wanted: ReadonlyArray<string>): Told =>
  told("seeExceptions", wanted, ({ world }) =>
    expect(world.ledger.exceptions().map(({ amount, currency, kind }) => `${kind} ${amount} ${currency}`)).toEqual(
      wanted
    )
  )

/** What is stored. */
export const seeRows = (sql: string, ...wanted: ReadonlyArray<object>): Told =>
  told("seeRows", [sql, ...wanted], ({ world }) => {
    const { all, close } = engine.rows(world.path)
    try {
      expect(all(sql)).toEqual(wanted)
    } finally {
      close()
    }
  })

/** What is said of a chain; `unhealthy`: its providers by their place, and why; `alone`: whether one decides alone. */
export const seeHealth = ({
  on,
  ...wanted
}: On & {
  readonly ready?: boolean
  readonly reason?: RegExp | undefined
  readonly unhealthy?: Readonly<Record<number, RegExp>>
  readonly alone?: boolean
}): Told =>
  told("seeHealth", [on, wanted], async (story) => {
    const all = await story.world.health()
    const found = all?.find(({ chain }) => chain === story.place(on).plan.chain)
    if ("ready" in wanted) expect(found?.ready).toBe(wanted.ready)
    if ("reason" in wanted) expect(found?.reason).toEqual(wanted.reason && expect.stringMatching(wanted.reason))
    if ("alone" in wanted) expect(found?.decidesAloneSeconds !== undefined).toBe(wanted.alone)
    if (wanted.unhealthy === undefined) return
    const unhealthy = found?.providers.flatMap(({ healthy, reason }, i) => (healthy ? [] : [[i, reason]]))
    const reasons = Object.entries(wanted.unhealthy).map(([i, reason]) => [i, expect.stringMatching(reason)])
    expect(Object.fromEntries(unhealthy ?? [])).toEqual(Object.fromEntries(reasons))
  })

/** How many calls of some methods there were so far, to one provider, or to all of all chains. */
export const seeCalls = (
  method: RegExp,
  { atLeast = 0, atMost, on, to }: On & { readonly to?: number; readonly atLeast?: number; readonly atMost?: number }
): Told =>
  told("seeCalls", [method, to, atLeast, atMost, on], (story) => {
    const all = story.world.places.flatMap(({ providers }) => providers)
    const asked = to === undefined ? all : [story.provider(to, on)]
    const calls = asked.reduce((sum, one) => sum + story.calls(method, one), 0)
    expect(calls).toBeGreaterThanOrEqual(atLeast)
    if (atMost !== undefined) expect(calls).toBeLessThanOrEqual(atMost)
  })

/** Everything works from now on, and there are as many blocks as anything waits for: so it ends, within minutes. */
export const end = (states: States): Told =>
  told("end", [states], async (story) => {
    story.checkTold()
    await story.world.heal()
    const isSo = Object.entries(states).map(([name, state]) => [name, new RegExp(state)] as const)
    await story.world.confirmAll(() => {
      if (!isSo.every(([name, state]) => state.test(stateOf(story.payment(name))))) throw new Violation("not yet")
    })
    expect(story.world.ledger.isCaughtUp()).toBe(true)
    expectStates(story, states)
  })

const tell = async (
  stage: Stage,
  { chains = ["ethereum"], traits, ...conditions }: Cast,
  steps: ReadonlyArray<Told>
) => {
  const dice = new Dice("told")
  const usual = { latency: 0, traces: true, overrides: true, stateDepth: Number.POSITIVE_INFINITY }
  const places = chains.map((chain) => new Place(planOf(chain), dice, { ...usual, ...traits }, conditions))
  const world = stage.world("told", places, conditions)
  const story = new Story(world)
  try {
    await world.start()
    for (const [i, { run, says }] of steps.entries()) {
      try {
        await run(story)
      } catch (cause) {
        if (cause instanceof Error) cause.message = `step ${i + 1}, ${says}: ${cause.message}`
        throw cause
      }
    }
    story.checkTold()
  } finally {
    await world.end()
  }
}

/** Where a file's stories are told. */
export const telling = () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await Stage.make()
  })
  afterAll(() => stage.close())
  return (title: string, cast: Cast, ...steps: ReadonlyArray<Told>) => {
    it(title, () => tell(stage, cast, steps))
  }
}
