import { Clock, Duration, Effect } from "effect"
import { type ChainName, chainTraits } from "../../Domain/Chain.ts"
import { getGasPrice, getL1Fee, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import type { Providers } from "./Providers.ts"

/** What a transfer costs on a chain. */
export interface Gas {
  /** Wei for a unit of gas. */
  readonly price: bigint
  /** Wei besides, for the transaction's data on Ethereum; 0 on chains that take no such fee. */
  readonly l1Fee: bigint
}

/** The gas price is asked for again after this, and not given out when it is older than `life`. Milliseconds. */
const interval = Duration.toMillis("30 seconds")
const life = Duration.toMillis("2 minutes")
/** After a failure it is not asked for again for this long. */
const retryInterval = Duration.toMillis("5 seconds")
/** Who wants a quote waits no longer for a provider. */
const deadline = Duration.seconds(3)

/** Bytes of an unsigned ERC-20 transfer: 68 of calldata, 52 of the other fields of EIP-1559. One of coins has fewer. */
const transferBytes = 120

/**
 * What a transfer costs at this gas price; undefined where the data fee is not told. It is asked for by itself, since
 * payments must be seen however the fee is told.
 */
export const gasOf = (chain: ChainName, client: RpcClient, price: bigint): Effect.Effect<Gas | undefined> =>
  chainTraits[chain].hasL1Fee
    ? sendBatch(client, [getL1Fee(transferBytes)]).pipe(
        Effect.map(([l1Fee]): Gas => ({ price, l1Fee })),
        Effect.catchAll((error) =>
          Effect.as(
            Effect.logDebug("the L1 data fee cannot be read").pipe(Effect.annotateLogs({ reason: error.message })),
            undefined
          )
        )
      )
    : Effect.succeed({ price, l1Fee: 0n })

const isWithin = (at: number | undefined, age: number, now: number): boolean =>
  at !== undefined && at <= now && now - at < age

/**
 * What a transfer costs now, asked of the serving provider when somebody wants to know: while nobody asks for quotes it
 * costs no calls, and at most one round in `interval` otherwise. Undefined when it is not known, or older than two minutes.
 */
export const makeGas = (chain: ChainName, providers: Providers): Effect.Effect<Gas | undefined> => {
  const single = Effect.unsafeMakeSemaphore(1)
  let known: (Gas & { readonly at: number }) | undefined
  let triedAt: number | undefined

  const refresh = Effect.gen(function* () {
    const { client } = yield* providers.current
    const [price] = yield* sendBatch(client, [getGasPrice])
    return yield* gasOf(chain, client, price)
  }).pipe(
    Effect.timeout(deadline),
    Effect.catchAll((error) =>
      Effect.as(
        Effect.logDebug("the gas price cannot be read").pipe(Effect.annotateLogs({ reason: error.message })),
        undefined
      )
    )
  )

  return single.withPermits(1)(
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (!isWithin(known?.at, interval, now) && !isWithin(triedAt, retryInterval, now)) {
        triedAt = now
        const found = yield* refresh
        if (found !== undefined) known = { ...found, at: now }
      }
      return isWithin(known?.at, life, yield* Clock.currentTimeMillis) ? known : undefined
    })
  )
}
