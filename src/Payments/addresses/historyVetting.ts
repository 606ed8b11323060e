/**
 * Vetting: asks every chain of the mode whether the next addresses of a wallet have a history (a native or token
 * balance, or transactions sent), so that they are skipped. It goes on until `payments.look_ahead` addresses in a row have none. A pool is vetted by
 * one fiber at a time; a chain that cannot be asked delays vetting, never a payment beyond five seconds.
 */
import { Duration, Effect, Fiber } from "effect"
import type { AddressHistory } from "../../Chains/balances/AddressHistory.ts"
import { type ChainName, networkKey } from "../../Domain/Chain.ts"
import { waitAtMost } from "../../lib/waiting.ts"
import type { AddressPool } from "./AddressPool.ts"

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
