import { Dice } from "./Dice.ts"
import {
  falseFinals,
  hidden,
  highTags,
  invention,
  type Lie,
  longBranch,
  multiplied,
  renamed,
  shifted,
  wrongTimes
} from "./Lie.ts"
import { type ChainPlan, urlOf } from "./plans.ts"
import { SimChain } from "./SimChain.ts"
import { type FaultKind, lies, SimProvider, type Traits } from "./SimProvider.ts"
import type { Conditions } from "./steps.ts"
import { hashOf, type Transaction } from "./transactions.ts"
import type { Watched } from "./watched.ts"

/** When every simulation begins, Unix milliseconds, and the blocks that each chain has by then. */
export const epoch = 1_700_000_000_000
export const firstHeight = 30

/** By then the daemon has asked a provider that was in cooldown, in milliseconds. */
const firstAnswers = 15_000

/** What a provider may make of the chain for a while. */
export type LieKind =
  | "invention"
  | "multiplied"
  | "renamed"
  | "hidden"
  | "shifted"
  | "longBranch"
  | "times"
  | "heads"
  | "tags"
  | "falseFinals"

/** A lie about an address, where it is about one. */
export interface LieOrder {
  readonly kind: LieKind
  /** Lower case. */
  readonly address: string | undefined
  /** What was never sent. */
  readonly transaction: Transaction | undefined
  /** Blocks, seconds, base units or times, whatever the kind wants. */
  readonly size: bigint
  readonly name: string
}

/** A chain and its providers. */
export class Place {
  readonly plan: ChainPlan
  readonly chain: SimChain
  readonly providers: ReadonlyArray<SimProvider>
  #isGarbled = false
  /** When the last provider that is gone is back, Unix milliseconds. */
  goneUntil = 0
  #isLeftToOne = false
  /** When its providers answer for the first time, Unix milliseconds. */
  #begins = epoch
  /** By provider, until when it must neither fail nor lie: it is the one that says what is true. Unix milliseconds. */
  readonly #honestUntil = new Map<number, number>()
  /** By provider, until when it has a fault, or lies. */
  readonly #failsUntil = new Map<number, number>()
  readonly #liedAbout = new Set<string>()
  /** Transactions that were reported under another hash: everything reported about what they bring is false. */
  readonly #renamed = new Set<string>()
  #areTimesWrong = false
  /** Providers that tell a lie that every liar would tell in the same way. */
  readonly #liars = new Map<LieOrder["kind"], number>()
  #hasLied = false
  /** A story says what has to come of its lies. */
  #isTold = false

  /** `over`: what its providers are like; the rest is as the dice say. */
  constructor(
    plan: ChainPlan,
    dice: Dice,
    over: Partial<Traits> = {},
    { archive = false, capped = [], providers = 2 }: Conditions = {}
  ) {
    const { chain: name, chainId, confirmations, interval, layer2 } = plan
    const shape = { name, interval, safe: confirmations + 1, finalized: confirmations + 4 }
    this.plan = plan
    this.chain = new SimChain(shape, firstHeight, epoch)
    const elsewhere = new SimChain({ ...shape, name: `not ${name}` }, dice.pick([10, 29, 34, 1_000]), epoch)
    const latency = dice.pick([0, 0, 150, 900])
    const provider = (i: number) => {
      const traits = {
        host: new URL(urlOf(plan, i)).host,
        chainId,
        latency,
        overrides: dice.chance(0.7),
        traces: dice.chance(0.5),
        tags: true,
        layer2,
        stateDepth: dice.chance(0.7) ? 10_000 : 40,
        capsLogs: capped.includes(i),
        ...(archive ? { stateDepth: Number.POSITIVE_INFINITY } : {}),
        ...over
      }
      return new SimProvider(traits, this.chain, elsewhere, new Dice(`${dice.below(2 ** 32)} ${i}`))
    }
    this.providers = Array.from({ length: providers }, (_, i) => provider(i))
  }

  /** None of its providers answers for the first seconds: payments are made before the daemon knows any block. */
  beginsAfter(seconds: number): void {
    this.#begins = epoch + seconds * 1000
    for (const i of this.providers.keys()) this.breaks(i, "down", 1, epoch, this.#begins)
  }

  /** Its providers answered from the start. */
  get isPunctual(): boolean {
    return this.#begins === epoch
  }

  /**
   * Something goes wrong with a provider until then, Unix milliseconds. Not where another lies and this one alone says
   * what is true: what all leave out no one can know. "gone" goes wrong in any case.
   */
  breaks(provider: number, kind: FaultKind, size: number, now: number, until: number): void {
    if (lies.has(kind)) {
      if (!this.#mayLie(provider, now, until)) return
    } else {
      if (kind !== "gone" && this.#isHonest(provider, now)) return
      this.#failsUntil.set(provider, Math.max(this.#failsUntil.get(provider) ?? 0, until))
    }
    // The first provider that responds determines the chain's first block.
    const isOfAnother = kind === "wrongHash" || kind === "wrongChain"
    if (isOfAnother && !this.isPunctual && now < this.#begins + firstAnswers) return
    if (kind === "wrongHash" || kind === "garbage") this.#isGarbled = true
    if (kind === "gone") {
      this.#isLeftToOne = true
      this.goneUntil = Math.max(this.goneUntil, until)
    }
    this.providers[provider]?.breaks(kind, size, until)
  }

  #isHonest(provider: number, now: number): boolean {
    return (this.#honestUntil.get(provider) ?? 0) > now
  }

  /** Whether a provider may lie until then: another one responds, and does not lie meanwhile. */
  #mayLie(provider: number, now: number, until: number): boolean {
    if (this.#isHonest(provider, now)) return false
    const isFit = (_: SimProvider, i: number) => i !== provider && (this.#failsUntil.get(i) ?? 0) <= now
    const honest = this.providers.findLastIndex(isFit)
    if (honest < 0) return false
    this.#honestUntil.set(honest, Math.max(this.#honestUntil.get(honest) ?? 0, until))
    this.#failsUntil.set(provider, Math.max(this.#failsUntil.get(provider) ?? 0, until))
    return true
  }

  /** A provider lies until then, Unix milliseconds, unless no one else would say what is true. */
  tells(provider: number, order: LieOrder, now: number, until: number): void {
    const liar = this.providers[provider]
    if (liar === undefined || now < this.#begins + firstAnswers * Number(!this.isPunctual)) return
    const lie = this.#lieOf(liar, order)
    // Two that tell the same lie are believed, and promised to be: each has another story, but for these.
    const areTimes = order.kind === "times" || order.kind === "heads"
    const plain = areTimes ? "times" : order.kind === "tags" ? "tags" : undefined
    if (plain !== undefined && provider !== (this.#liars.get(plain) ?? provider)) return
    if (lie === undefined || !this.#mayLie(provider, now, until)) return
    liar.tells(lie, until)
    this.#hasLied = true
    if (order.address !== undefined) this.#liedAbout.add(order.address)
    if (plain !== undefined) this.#liars.set(plain, provider)
    if (areTimes) this.#areTimesWrong = true
    if (order.kind === "longBranch" || order.kind === "falseFinals") this.#isGarbled = true
  }

  /**
   * A provider of a story tells this, whatever the others do, until then, Unix milliseconds: the story itself says what has to
   * come of it.
   */
  tellsAnyway(provider: SimProvider, lie: Lie, name: string, until: number): void {
    provider.tells(lie, until)
    provider.untold.set(lie, name)
    this.#hasLied = true
    this.#isTold = true
  }

  #lieOf(liar: SimProvider, { address, kind, name, size, transaction }: LieOrder): Lie | undefined {
    const next = this.chain.head.number + 1
    switch (kind) {
      case "longBranch":
        return longBranch(this.chain.head, Number(size), hashOf(name).slice(2, 10))
      case "times":
        return wrongTimes(Number(size))
      case "heads":
        return wrongTimes(Number(size), next)
      case "tags":
        return highTags
      case "falseFinals":
        return falseFinals(this.chain)
      case "invention":
        // In a block that has been read, or is being read, or is yet to come.
        if (address === undefined || transaction === undefined) return undefined
        return invention(address, next - 1 + (Number(size) % 3), transaction)
      case "multiplied":
        return address === undefined ? undefined : multiplied(address, next, Number(size))
      case "renamed":
        return address === undefined
          ? undefined
          : renamed(this.chain, address, next, (txHash) => this.#renamed.add(txHash))
      case "hidden":
        if (address === undefined) return undefined
        return hidden(address, next, size % 2n === 0n, (txHash) => liar.withheld.add(txHash))
      case "shifted":
        return address === undefined ? undefined : shifted(address, next, size)
    }
  }

  /** One of its providers has reported less than the truth, or something else. */
  get hasLied(): boolean {
    return this.#hasLied || this.providers.some(({ withheld }) => withheld.size > 0)
  }

  #isLiedAbout(address: string): boolean {
    if (this.#isTold || this.#liedAbout.has(address)) return true
    const isOf = (hash: string) =>
      this.chain.inclusions
        .get(hash)
        ?.some(({ credits }) => credits.some((credit) => credit.txHash === hash && credit.address === address))
    return [...this.#renamed].some(isOf)
  }

  /** As the ledger looks at it. */
  get watched(): Watched {
    const quorum = Math.min(2, this.providers.length)
    return {
      plan: this.plan,
      chain: this.chain,
      shown: () => this.providers.flatMap(({ shown = [] }) => shown),
      isGarbled: () => this.#isGarbled || this.#isTold,
      isLiedAbout: (address) => this.#isLiedAbout(address),
      tellsInside: this.providers.filter(({ traits }) => traits.traces || traits.stateDepth > 1_000).length >= quorum,
      keepsStates: this.providers.filter(({ traits }) => traits.stateDepth > 1_000).length >= quorum,
      quorum,
      // Two of three have the right ones.
      areTimesWrong: () => this.#areTimesWrong && this.providers.length < 3,
      isOneTimeWrong: () => this.#areTimesWrong || this.#isTold,
      readers: (number) => this.providers.filter(({ read }) => read.has(number)).length,
      isLeftToOne: () => this.#isLeftToOne,
      withheld: (hash) => this.providers.some((provider) => provider.withheld.has(hash))
    }
  }
}
