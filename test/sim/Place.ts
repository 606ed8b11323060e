import { Dice } from "./Dice.ts"
import type { Watched } from "./Ledger.ts"
import { type ChainPlan, providers, urlOf } from "./plans.ts"
import { SimChain } from "./SimChain.ts"
import { type FaultKind, lies, SimProvider, type Traits } from "./SimProvider.ts"

/** When every simulation begins, Unix milliseconds, and the blocks that each chain has by then. */
export const epoch = 1_700_000_000_000
export const firstHeight = 30

/** By then the daemon has asked a provider that was put aside, in milliseconds. */
const firstAnswers = 15_000

/** A chain and its providers. */
export class Place {
  readonly plan: ChainPlan
  readonly chain: SimChain
  readonly providers: ReadonlyArray<SimProvider>
  #isGarbled = false
  /** When its providers answer for the first time, Unix milliseconds. */
  #begins = epoch
  /** Until when the first provider lies and the second must not fail, Unix milliseconds. */
  #liesUntil = 0
  /** Until when the second one has a fault. */
  #secondFailsUntil = 0

  /** `over`: what its providers are like; the rest is as the dice say. */
  constructor(plan: ChainPlan, dice: Dice, over: Partial<Traits> = {}) {
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
   * Something goes wrong with a provider until then, Unix milliseconds. Not while the other lies, and no lie while the
   * other has something: what both leave out nobody can know.
   */
  breaks(provider: number, kind: FaultKind, size: number, now: number, until: number): void {
    if (lies.has(kind)) {
      if (this.#secondFailsUntil > now) return
      this.#liesUntil = Math.max(this.#liesUntil, until)
    } else if (provider === 1) {
      if (this.#liesUntil > now) return
      this.#secondFailsUntil = Math.max(this.#secondFailsUntil, until)
    }
    // Who answers first is believed which block is the chain's first.
    const isOfAnother = kind === "wrongHash" || kind === "wrongChain"
    if (isOfAnother && !this.isPunctual && now < this.#begins + firstAnswers) return
    if (kind === "wrongHash" || kind === "garbage") this.#isGarbled = true
    this.providers[provider]?.breaks(kind, size, until)
  }

  /** As the ledger looks at it. */
  get watched(): Watched {
    return {
      plan: this.plan,
      chain: this.chain,
      isGarbled: () => this.#isGarbled,
      withheld: (hash) => this.providers.some((provider) => provider.withheld.has(hash))
    }
  }
}
