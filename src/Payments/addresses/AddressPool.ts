import { Clock, Effect } from "effect"
import type { ChainName, Mode } from "../../Domain/Chain.ts"
import { eventLoopTurn } from "../../Sql/eventLoopTurn.ts"
import type { Derive } from "./derivingThread.ts"
import type { HdWallet } from "./hdWallet.ts"

/** Addresses derived ahead, so that a burst of payments waits for no elliptic curve. */
const depth = 1000
/** A refill derives this many, about four milliseconds, before it lets others run: as many as a busy turn takes. */
const batch = 64
/** To start a thread takes as long as to derive so many. */
const fewForThread = 256
/** A refill that follows the last one as soon as this is part of a burst: it leaves the processor to the requests. */
const burstMillis = 5_000
/** One provider alone can say so many look-aheads of addresses to have a history, and no more. */
const believedAlone = 5

interface Candidate {
  readonly index: number
  readonly address: string
}

/** One wallet's addresses ahead of its counter. The counter itself is the store's. */
export class AddressPool {
  readonly fingerprint: string
  readonly mode: Mode
  readonly #wallet: HdWallet
  readonly #derive: Derive
  readonly #wanting: (what: "addresses" | "vetting") => void
  readonly #lookAhead: number
  readonly #ahead = new Map<number, string>()
  readonly #used = new Set<number>()
  #next = 0
  /** All below it have been asked about, on every chain. */
  #vetted = 0
  /** Above the last one that is known to have a history. */
  #unused = 0
  /** By chain, how far one provider's word has drawn the look-ahead on. */
  readonly #drawn = new Map<ChainName, number>()
  #filledAt = Number.NEGATIVE_INFINITY

  /**
   * `derive` helps in a burst; `wanting` is called when addresses or their vetting run low. After `lookAhead` addresses in
   * a row without a history the wallet is taken for unused.
   */
  constructor(
    wallet: HdWallet,
    mode: Mode,
    derive: Derive,
    lookAhead: number,
    wanting: (what: "addresses" | "vetting") => void
  ) {
    this.#wallet = wallet
    this.#derive = derive
    this.#lookAhead = lookAhead
    this.#wanting = wanting
    this.fingerprint = wallet.fingerprint
    this.mode = mode
  }

  /** For an index that has not been passed. */
  address(index: number): string {
    const known = this.#ahead.get(index)
    if (known !== undefined) return known
    const address = this.#wallet.address(index)
    this.#ahead.set(index, address)
    return address
  }

  /** The addresses of `from` to `to`, exclusive, wherever the counter stands. Others have their turn meanwhile. */
  range(from: number, to: number): Effect.Effect<ReadonlyArray<string>> {
    return Effect.gen(this, function* () {
      const addresses: Array<string> = []
      while (from + addresses.length < to) {
        const next = from + addresses.length
        const isFew = to - next <= fewForThread
        const count = Math.min(isFew ? batch : depth, to - next)
        const here = Effect.sync(() => this.rangeAtOnce(next, next + count))
        const there = this.#derive({ external: this.#wallet.external, from: next, count })
        addresses.push(...(yield* isFew ? here : Effect.catchTag(there, "NoThread", () => here)))
        yield* eventLoopTurn
      }
      return addresses
    })
  }

  /** The same, and nobody has a turn meanwhile. */
  rangeAtOnce(from: number, to: number): ReadonlyArray<string> {
    return Array.from({ length: to - from }, (_, i) => this.#wallet.address(from + i))
  }

  hasHistory(index: number): boolean {
    return this.#used.has(index)
  }

  /** `index` has a history. */
  skip(index: number): void {
    if (index >= this.#next) this.#used.add(index)
    this.#unused = Math.max(this.#unused, index + 1)
  }

  /**
   * `index` has a history on a chain, by the word of one provider that nobody confirms. Gives whether that is believed: to
   * skip an address costs nothing, but one that claims it of all of them would use up the numbering.
   */
  skipAlone(index: number, chain: ChainName): boolean {
    const drawn = (this.#drawn.get(chain) ?? 0) + Math.max(0, index + 1 - Math.max(this.#unused, this.#next))
    if (drawn > believedAlone * this.#lookAhead) return false
    this.#drawn.set(chain, drawn)
    this.skip(index)
    return true
  }

  /** The counter stands at `next`. */
  startAt(next: number): void {
    this.#moveTo(next)
    this.#wanting("addresses")
    this.#wanting("vetting")
  }

  /** `index`, and all below it, will not be asked for again. */
  passed(index: number): void {
    this.#moveTo(index + 1)
    if (this.#ahead.size < depth / 2) this.#wanting("addresses")
    if (this.#vettedUntil - this.#vettedFrom > this.#lookAhead / 2) this.#wanting("vetting")
  }

  #moveTo(next: number): void {
    for (let behind = this.#next; behind < next; behind++) {
      this.#ahead.delete(behind)
      this.#used.delete(behind)
    }
    this.#next = Math.max(this.#next, next)
  }

  get #vettedFrom(): number {
    return Math.max(this.#vetted, this.#next)
  }

  get #vettedUntil(): number {
    return Math.max(this.#unused, this.#next) + this.#lookAhead
  }

  /** The next addresses whose history nobody has asked about, from the index `from` on. */
  unvetted(from = 0): ReadonlyArray<Candidate> {
    const first = Math.max(from, this.#vettedFrom)
    return Array.from({ length: Math.max(0, this.#vettedUntil - first) }, (_, i) => ({
      index: first + i,
      address: this.address(first + i)
    }))
  }

  /** Every chain has told of all addresses below the index `to`. */
  vettedTo(to: number): void {
    this.#vetted = Math.max(this.#vetted, to)
  }

  readonly refill: Effect.Effect<void> = Effect.gen(this, function* () {
    const isBurst = (yield* Clock.currentTimeMillis) - this.#filledAt < burstMillis
    yield* isBurst ? Effect.catchTag(this.#fillByThread, "NoThread", () => this.#fill) : this.#fill
    this.#filledAt = yield* Clock.currentTimeMillis
  })

  // In both, what is passed meanwhile is left out: nobody would ever take it from here again.
  readonly #fill = Effect.gen(this, function* () {
    let derived = 0
    for (let i = this.#next; i < this.#next + depth && derived < depth; i = Math.max(i + 1, this.#next)) {
      if (this.#ahead.has(i)) continue
      this.address(i)
      if (++derived % batch === 0) yield* eventLoopTurn
    }
  })

  readonly #fillByThread = Effect.gen(this, function* () {
    let from = this.#next
    while (this.#ahead.has(from)) from++
    const addresses = yield* this.#derive({
      external: this.#wallet.external,
      from,
      count: this.#next + depth - from
    })
    // Money goes to these addresses: that they are of this wallet, and where they should be, is not left to a message.
    const [first] = addresses
    if (first !== undefined && first !== this.#wallet.address(from)) {
      yield* Effect.dieMessage("a thread gave addresses that are not this wallet's")
    }
    addresses.forEach((address, i) => {
      if (from + i >= this.#next) this.#ahead.set(from + i, address)
    })
  })
}
