import { Duration, Effect, Fiber } from "effect"
import type { AddressHistory } from "../../Chains/balances/AddressHistory.ts"
import { type ChainName, networkKey } from "../../Domain/Chain.ts"
import type { AddressPool } from "./AddressPool.ts"

/** When a chain could not be asked about addresses' history, it is asked again after this, then after twice as long. */
const vetAgain = Duration.minutes(1)
const longestVetAgain = Duration.hours(1)
/** The first payment of a wallet since the start waits no longer for what the chains know of its addresses. */
const patience = "5 seconds"

/** Asks the chains about the next addresses of pools, of one pool once at a time. */
export const makeVetter = Effect.fnUntraced(function* (history: AddressHistory["Type"]) {
  const scope = yield* Effect.scope
  const turns = new Map<AddressPool, Effect.Semaphore>()
  const firsts = new Map<AddressPool, Fiber.RuntimeFiber<unknown>>()
  /** Of which wallets and chains it has been said that one provider's word is not believed any more. */
  const disbelieved = new Set<string>()
  /** Rounds in a row in which a chain could not be asked. */
  let incomplete = 0

  const turnOf = (pool: AddressPool) => {
    const turn = turns.get(pool) ?? Effect.unsafeMakeSemaphore(1)
    turns.set(pool, turn)
    return turn
  }

  /** One provider would skip more of a chain's addresses than can be true. */
  const disbelieve = Effect.fnUntraced(function* (pool: AddressPool, chain: ChainName) {
    const key = `${pool.fingerprint} ${chain}`
    if (disbelieved.has(key)) return
    disbelieved.add(key)
    yield* Effect.logError(
      "one provider claims that too many addresses have a history: they are handed out unless another one confirms it. " +
        "If it is true, raise payments.look_ahead or use tilld addresses jump"
    ).pipe(Effect.annotateLogs({ wallet: pool.fingerprint, chain, mode: pool.mode }))
  })

  /** One question after another, until so many in a row have no history. Gives the chains that could not be asked. */
  const vet = Effect.fn("Addresses.vet")(function* (pool: AddressPool) {
    const missing = new Set<string>()
    let unvetted = pool.unvetted()
    while (unvetted.length > 0) {
      const indexes = new Map(unvetted.map(({ address, index }) => [address, index]))
      const used: Array<number> = []
      const beyondBelief = new Set<ChainName>()
      const unreachable = yield* history.vet(pool.mode, [...indexes.keys()], ({ addresses, chain, isConfirmed }) => {
        for (const index of addresses.flatMap((address) => indexes.get(address) ?? [])) {
          if (isConfirmed) pool.skip(index)
          else if (!pool.skipAlone(index, chain)) {
            beyondBelief.add(chain)
            break
          }
          used.push(index)
        }
      })
      for (const chain of beyondBelief) yield* disbelieve(pool, chain)
      if (used.length > 0) {
        yield* Effect.logWarning("addresses with a history are skipped").pipe(
          Effect.annotateLogs({
            wallet: pool.fingerprint,
            indexes: [...new Set(used)].sort((a, b) => a - b).join(", ")
          })
        )
      }
      for (const chain of [...unreachable, ...beyondBelief]) missing.add(networkKey({ chain, mode: pool.mode }))
      const asked = (unvetted.at(-1)?.index ?? 0) + 1
      if (missing.size === 0) pool.vettedTo(asked)
      unvetted = pool.unvetted(asked)
    }
    return missing
  })

  const inTurn = (pool: AddressPool) => turnOf(pool).withPermits(1)(vet(pool))

  /** Has the first round of a pool behind it, or has waited long enough. Who goes away meanwhile ends it for nobody. */
  const first = Effect.fnUntraced(function* (pool: AddressPool) {
    const fiber = firsts.get(pool) ?? (yield* Effect.forkIn(Effect.timeoutOption(inTurn(pool), patience), scope))
    firsts.set(pool, fiber)
    yield* Fiber.await(fiber)
  })

  /** Vets what is due. Gives how long to wait until the chains that could not be asked are asked again. */
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
    // Every chain is asked again, those that have answered too: not too often.
    const pause = Duration.min(Duration.times(vetAgain, 2 ** Math.min(incomplete, 10)), longestVetAgain)
    incomplete++
    return pause
  })

  return { first, round }
})
