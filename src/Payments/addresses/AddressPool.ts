/**
 * The next addresses of one wallet, derived and vetted ahead of their use. Vetting asks the chains whether an address has a
 * history (a native or token balance, or transactions sent), so that they are skipped, until `payments.look_ahead` addresses in a
 * row have none. A chain that cannot be asked delays vetting, never a payment beyond five seconds. The pool never decides which index is next: that counter is
 * in the store (`WalletsRepo.ts`), and `Addresses.ts` tells the pool where it stands.
 */
import { Clock, Duration, Effect, Fiber } from "effect"
import type { AddressHistory } from "../../Chains/balances/AddressHistory.ts"
import { type ChainName, type Mode, networkKey } from "../../Domain/Chain.ts"
import { eventLoopTurn, waitAtMost } from "../../lib/waiting.ts"
import type { ExtendedKey } from "../../Settings/childKey.ts"
import type { HdWallet } from "../../Settings/hdWallet.ts"
import { type NoThread, threadOf } from "../../Sql/workerThread.ts"

/** Addresses derived ahead, so that a burst of payments does not wait for elliptic curve arithmetic. */
const depth = 1000
/** The same before a burst: a start waits for them. */
const calmDepth = 256
/**
 * Addresses that a refill derives before it yields the event loop: in about a millisecond, in four times that at the start,
 * where the first answers of the chains would wait for it.
 */
const batch = 16
/** Starting a thread takes as long as deriving this many addresses. */
const fewForThread = 256
/** A refill within this time of the last one is part of a burst: it derives on a thread, beside the requests. */
const burstMillis = 5_000
/** Uncorroborated claims of a history are accepted for this many look-aheads of addresses. */
const believedLookAheads = 5

interface Candidate {
  readonly index: number
  readonly address: string
}

export class AddressPool {
  readonly fingerprint: string
  readonly account: number | undefined
  readonly sponsor: string
  readonly mode: Mode
  readonly #wallet: HdWallet
  readonly #derive: Derive
  readonly #request: (what: "addresses" | "vetting") => void
  readonly #lookAhead: number
  readonly #ahead = new Map<number, string>()
  readonly #used = new Set<number>()
  #next = 0
  /** All indexes below this one are vetted on every chain. */
  #vetted = 0
  /** The index after the last one that is known to have a history. */
  #unused = 0
  /** By chain, by how many indexes uncorroborated claims have advanced `#unused`. */
  readonly #advanced = new Map<ChainName, number>()
  #filledAt = Number.NEGATIVE_INFINITY
  /** Addresses ahead after the last refill. */
  #filledTo = calmDepth

  /**
   * @param derive derives on a thread, in a burst
   * @param lookAhead a wallet counts as unused from this many addresses in a row without a history on
   * @param request called when derived or vetted addresses run low
   */
  constructor(
    wallet: HdWallet,
    mode: Mode,
    derive: Derive,
    lookAhead: number,
    request: (what: "addresses" | "vetting") => void
  ) {
    this.#wallet = wallet
    this.#derive = derive
    this.#lookAhead = lookAhead
    this.#request = request
    this.fingerprint = wallet.fingerprint
    this.account = wallet.account
    this.sponsor = wallet.sponsor
    this.mode = mode
  }

  /** The address of an index that the counter has not passed, in EIP-55 form. */
  address(index: number): string {
    const known = this.#ahead.get(index)
    if (known !== undefined) return known
    const address = this.#wallet.address(index)
    this.#ahead.set(index, address)
    return address
  }

  /** The addresses of `from` to `to`, exclusive, wherever the counter stands. Yields the event loop in between. */
  range(from: number, to: number): Effect.Effect<ReadonlyArray<string>> {
    return Effect.gen(this, function* () {
      const addresses: Array<string> = []
      while (from + addresses.length < to) {
        const next = from + addresses.length
        const isFew = to - next <= fewForThread
        const count = Math.min(isFew ? batch : depth, to - next)
        const inline = Effect.sync(() => this.rangeAtOnce(next, next + count))
        const onThread = this.#derive({ external: this.#wallet.external, from: next, count })
        addresses.push(...(yield* isFew ? inline : Effect.catchTag(onThread, "NoThread", () => inline)))
        yield* eventLoopTurn
      }
      return addresses
    })
  }

  /** The same, without yielding. */
  rangeAtOnce(from: number, to: number): ReadonlyArray<string> {
    return Array.from({ length: to - from }, (_, i) => this.#wallet.address(from + i))
  }

  hasHistory(index: number): boolean {
    return this.#used.has(index)
  }

  /** Records that `index` has a history: it is never handed out. */
  skip(index: number): void {
    if (index >= this.#next) this.#used.add(index)
    this.#unused = Math.max(this.#unused, index + 1)
  }

  /**
   * Records that one provider of `chain` reports a history of `index`, which no other one confirms. Gives whether that is
   * believed: skipping an address costs nothing, but a provider that reports all of them would use up the numbering.
   */
  skipUncorroborated(index: number, chain: ChainName): boolean {
    const advanced = (this.#advanced.get(chain) ?? 0) + Math.max(0, index + 1 - Math.max(this.#unused, this.#next))
    if (advanced > believedLookAheads * this.#lookAhead) return false
    this.#advanced.set(chain, advanced)
    this.skip(index)
    return true
  }

  /** Sets the counter to `next`, and requests addresses and vetting from there on. */
  startAt(next: number): void {
    this.#moveTo(next)
    this.#request("addresses")
    this.#request("vetting")
  }

  /** The counter has passed `index`: it and all below it are never asked for again. */
  passed(index: number): void {
    this.#moveTo(index + 1)
    if (this.#ahead.size < this.#filledTo / 2) this.#request("addresses")
    if (this.#vettedUntil - this.#vettedFrom > this.#lookAhead / 2) this.#request("vetting")
  }

  #moveTo(next: number): void {
    for (let passed = this.#next; passed < next; passed++) {
      this.#ahead.delete(passed)
      this.#used.delete(passed)
    }
    this.#next = Math.max(this.#next, next)
  }

  get #vettedFrom(): number {
    return Math.max(this.#vetted, this.#next)
  }

  get #vettedUntil(): number {
    return Math.max(this.#unused, this.#next) + this.#lookAhead
  }

  /** The next addresses to be vetted, from the index `from` on. */
  unvetted(from = 0): ReadonlyArray<Candidate> {
    const first = Math.max(from, this.#vettedFrom)
    return Array.from({ length: Math.max(0, this.#vettedUntil - first) }, (_, i) => ({
      index: first + i,
      address: this.address(first + i)
    }))
  }

  /** Every chain has been asked about all addresses below the index `to`. */
  vettedTo(to: number): void {
    this.#vetted = Math.max(this.#vetted, to)
  }

  /** Derives addresses ahead of the counter: `calmDepth`, in a burst `depth`. */
  readonly refill: Effect.Effect<void> = Effect.gen(this, function* () {
    const isBurst = (yield* Clock.currentTimeMillis) - this.#filledAt < burstMillis
    this.#filledTo = isBurst ? depth : calmDepth
    yield* isBurst ? Effect.catchTag(this.#fillByThread, "NoThread", () => this.#fill) : this.#fill
    this.#filledAt = yield* Clock.currentTimeMillis
  })

  // Both leave out indexes that the counter passes meanwhile: they would stay in the map permanently.
  readonly #fill = Effect.gen(this, function* () {
    let derived = 0
    const most = this.#filledTo
    for (let i = this.#next; i < this.#next + most && derived < most; i = Math.max(i + 1, this.#next)) {
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
    // Money goes to these addresses: check that the thread's answer is of this wallet and begins at the right index.
    const [first] = addresses
    if (first !== undefined && first !== this.#wallet.address(from)) {
      yield* Effect.dieMessage("a thread gave addresses that are not this wallet's")
    }
    addresses.forEach((address, i) => {
      if (from + i >= this.#next) this.#ahead.set(from + i, address)
    })
  })
}

/** `count` addresses of an external chain, from index `from` on. */
export interface IndexRange {
  readonly external: ExtendedKey
  readonly from: number
  readonly count: number
}

export type Derive = (range: IndexRange) => Effect.Effect<ReadonlyArray<string>, NoThread>

/** For one range; a thousand addresses take a tenth of a second. */
const deadline = "10 seconds"

// A file of its own in the bundle, next to the bundle that this module is in.
const deriver = new URL("./deriver.js", import.meta.url)

/** Derives addresses on a worker thread, so that requests are not held up. Call it for one range at a time. */
export const derivingThread = (file = deriver) => threadOf<IndexRange, ReadonlyArray<string>>(file, deadline)

/** Pause before a chain that could not be asked is asked again; it doubles each time, up to the longest. */
const vetAgain = Duration.minutes(1)
const longestVetAgain = Duration.hours(1)
/** The first payment of a wallet since the start waits for its vetting no longer than this. */
const patience = "5 seconds"

export const makeVetter = Effect.fnUntraced(function* (history: AddressHistory["Type"]) {
  const scope = yield* Effect.scope
  const turns = new Map<AddressPool, Effect.Semaphore>()
  const firsts = new Map<AddressPool, Fiber.RuntimeFiber<unknown>>()
  /** Wallets and chains for which it is logged that uncorroborated reports are no longer accepted. */
  const disbelieved = new Set<string>()
  /** Rounds in a row in which a chain could not be asked. */
  let incomplete = 0

  const turnOf = (pool: AddressPool) => {
    const turn = turns.get(pool) ?? Effect.unsafeMakeSemaphore(1)
    turns.set(pool, turn)
    return turn
  }

  /** Logs, once, that one provider reports more addresses with a history than can be true. */
  const disbelieve = Effect.fnUntraced(function* (pool: AddressPool, chain: ChainName) {
    const key = `${pool.fingerprint} ${chain}`
    if (disbelieved.has(key)) return
    disbelieved.add(key)
    yield* Effect.logError(
      "one provider reports too many addresses with a history: they are handed out unless another one confirms it. " +
        "If it is true, raise payments.look_ahead or use tilld addresses jump"
    ).pipe(Effect.annotateLogs({ wallet: pool.fingerprint, chain, mode: pool.mode }))
  })

  /** Vets page after page until the look-ahead has no history. Gives the chains that could not be asked. */
  const vet = Effect.fn("Addresses.vet")(function* (pool: AddressPool) {
    const missing = new Set<string>()
    let unvetted = pool.unvetted()
    while (unvetted.length > 0) {
      const indexes = new Map(unvetted.map(({ address, index }) => [address, index]))
      const used: Array<number> = []
      const unbelieved = new Set<ChainName>()
      const unreachable = yield* history.vet(pool.mode, [...indexes.keys()], ({ addresses, chain, isConfirmed }) => {
        for (const index of addresses.flatMap((address) => indexes.get(address) ?? [])) {
          if (isConfirmed) pool.skip(index)
          else if (!pool.skipUncorroborated(index, chain)) {
            unbelieved.add(chain)
            break
          }
          used.push(index)
        }
      })
      for (const chain of unbelieved) yield* disbelieve(pool, chain)
      if (used.length > 0) {
        yield* Effect.logWarning("addresses with a history are skipped").pipe(
          Effect.annotateLogs({
            wallet: pool.fingerprint,
            indexes: [...new Set(used)].sort((a, b) => a - b).join(", ")
          })
        )
      }
      for (const chain of [...unreachable, ...unbelieved]) missing.add(networkKey({ chain, mode: pool.mode }))
      const asked = (unvetted.at(-1)?.index ?? 0) + 1
      if (missing.size === 0) pool.vettedTo(asked)
      unvetted = pool.unvetted(asked)
    }
    return missing
  })

  const inTurn = (pool: AddressPool) => turnOf(pool).withPermits(1)(vet(pool))

  /**
   * Waits for a pool's first round, or until `patience` is over. An interrupted caller does not end the round. An
   * uninterruptible one, such as a create with an Idempotency-Key, does not pass that on: the wait would always take
   * the whole of `patience`.
   */
  const first = Effect.fnUntraced(function* (pool: AddressPool) {
    const round = Effect.interruptible(waitAtMost(inTurn(pool), patience))
    const fiber = firsts.get(pool) ?? (yield* Effect.forkIn(round, scope))
    firsts.set(pool, fiber)
    yield* Fiber.await(fiber)
  })

  /** Vets all pools. Gives the pause before chains that could not be asked are asked again; undefined where all answered. */
  const round = Effect.fnUntraced(function* (pools: ReadonlyArray<AddressPool>) {
    const missing = yield* Effect.forEach(pools, inTurn, { concurrency: 1 })
    const chains = new Set(missing.flatMap((each) => [...each]))
    if (chains.size === 0) {
      incomplete = 0
      return undefined
    }
    if (incomplete === 0) {
      yield* Effect.logWarning("addresses are handed out without knowing their history on every chain").pipe(
        Effect.annotateLogs({ unreachable: [...chains].join(", ") })
      )
    }
    // The next round asks every chain again, also those that answered: not too often.
    const pause = Duration.min(Duration.times(vetAgain, 2 ** Math.min(incomplete, 10)), longestVetAgain)
    incomplete++
    return pause
  })

  return { first, round }
})
