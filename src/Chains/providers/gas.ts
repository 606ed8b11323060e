import { Clock, Duration, Effect } from "effect"
import { type ChainName, chainTraits } from "../../Domain/Chain.ts"
import { middle } from "../evidence/Ballot.ts"
import { getGasPrice, getL1Fee, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import type { Provider, Providers } from "./Providers.ts"

/** The gas price of a chain, and the other costs of a transfer. */
export interface Gas {
  /** Wei per unit of gas. */
  readonly price: bigint
  /** Wei for the transaction's data on Ethereum, in addition to the gas; 0 on chains without such a fee. */
  readonly l1Fee: bigint
}

/** The gas price is read again after `interval`, and not used when older than `life`. Milliseconds. */
const interval = Duration.toMillis("30 seconds")
const life = Duration.toMillis("2 minutes")
/** Pause after a failed read. */
const retryInterval = Duration.toMillis("5 seconds")
/** How long a quote waits at most for the gas price. */
const deadline = Duration.seconds(3)

/** Bytes of an unsigned ERC-20 transfer: 68 of calldata, 52 of the other fields of EIP-1559. One of coins has fewer. */
const transferBytes = 120

/** Undefined in place of a failure, which is logged. */
const orUnknown = <A, E extends { readonly message: string }>(read: Effect.Effect<A, E>, failure: string) =>
  Effect.catchAll(read, ({ message }) =>
    Effect.as(Effect.annotateLogs(Effect.logDebug(failure), { reason: message }), undefined)
  )

/**
 * The cost of a transfer at this gas price (wei); undefined where the data fee cannot be read. The fee is read in a
 * call of its own, so that its failure affects nothing else.
 */
export const gasOf = (chain: ChainName, client: RpcClient, price: bigint): Effect.Effect<Gas | undefined> =>
  chainTraits[chain].hasL1Fee
    ? orUnknown(
        Effect.map(sendBatch(client, [getL1Fee(transferBytes)]), ([l1Fee]) => ({ price, l1Fee })),
        "the L1 data fee cannot be read"
      )
    : Effect.succeed({ price, l1Fee: 0n })

const isWithin = (at: number | undefined, age: number, now: number): boolean =>
  at !== undefined && at <= now && now - at < age

/** The cost of a transfer by one provider; undefined where unknown. */
const readGas = (chain: ChainName, { client }: Provider): Effect.Effect<Gas | undefined> => {
  const read = Effect.flatMap(sendBatch(client, [getGasPrice]), ([price]) => gasOf(chain, client, price))
  return orUnknown(Effect.timeout(read, deadline), "the gas price cannot be read")
}

/**
 * The current cost of a transfer, by the median of the providers that know it, read on demand: without quotes it takes
 * no calls, otherwise at most one read in each `interval`. Undefined when unknown, or older than two minutes.
 */
export const makeGas = (chain: ChainName, providers: Providers): Effect.Effect<Gas | undefined> => {
  const single = Effect.unsafeMakeSemaphore(1)
  let known: (Gas & { readonly at: number }) | undefined
  let triedAt: number | undefined

  const refresh = orUnknown(
    Effect.gen(function* () {
      const serving = yield* providers.current
      const asked = [serving, ...(yield* providers.others(serving))]
      const said = yield* Effect.forEach(asked, (provider) => readGas(chain, provider), { concurrency: asked.length })
      const known = said.filter((gas) => gas !== undefined)
      const price = middle(known.map((gas) => gas.price))
      const l1Fee = middle(known.map((gas) => gas.l1Fee))
      return price === undefined || l1Fee === undefined ? undefined : { price, l1Fee }
    }),
    "no provider can be asked for the gas price"
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
