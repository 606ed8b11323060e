/** The fees of a plan's steps (EIP-1559), and what data costs on top. */
import { Effect, Either } from "effect"
import { formatUnits, parseUnits } from "viem"
import { getGasPrice, sendBatch } from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { getPriorityFee } from "../Chains/rpc/sendingMethods.ts"
import type { ChainName } from "../Domain/Chain.ts"
import { type CollectRefused, collectRefusal, type Plan } from "./Plan.ts"

/**
 * A step is a quarter above the one before: nodes replace a transaction by one that offers a tenth more at least
 * (https://geth.ethereum.org/docs/fundamentals/command-line-options, txpool.pricebump).
 */
const stepFactor = 125n
/** The first step bears that the base fee grows by half: three full blocks, at an eighth each (EIP-1559). */
const firstFactor = 150n

const times = (value: bigint, percent: bigint): bigint => (value * percent + 99n) / 100n

/** A fee in gwei, as people say it. */
export const gwei = (wei: bigint): string => formatUnits(wei, 9)

/** Wei of a fee that a person has typed in gwei. */
export const weiOf = (gwei: string): bigint => parseUnits(gwei, 9)

/** Wei for a unit of gas above the base fee: what the node asks for, or where it does not say, what its gas price has above it. */
export const readTip = (client: RpcClient, baseFee: bigint) =>
  sendBatch(client, [getPriorityFee]).pipe(
    Effect.map(([tip]) => tip),
    Effect.catchIf(
      ({ reason }) => reason === "unsupported" || reason === "refused",
      () => Effect.map(sendBatch(client, [getGasPrice]), ([price]) => (price > baseFee ? price - baseFee : 0n))
    )
  )

/** The lower tip of those that providers name, and at most four times the base fee or what is usual. */
export const sanestTip = (chain: ChainName, baseFee: bigint, tips: ReadonlyArray<bigint>): bigint => {
  // More than any chain has asked for in earnest, unless its base fee is high too: Polygon wants 25 gwei at least.
  const usual = (chain === "polygon" ? 100n : 5n) * 10n ** 9n
  return [usual > 4n * baseFee ? usual : 4n * baseFee, ...tips].reduce((least, tip) => (tip < least ? tip : least))
}

/** The steps of a plan, ascending, none above `cap`. Refused where the chain is dearer than that already. */
export const feeSteps = (
  { baseFee, tip }: Readonly<Record<"baseFee" | "tip", bigint>>,
  count: number,
  cap: bigint | undefined
): Either.Either<Plan["fees"], CollectRefused> => {
  const all: Array<{ readonly most: string; readonly tip: string }> = []
  let step = { most: times(baseFee, firstFactor) + tip, tip }
  for (let i = 0; i < count && (cap === undefined || step.most <= cap); i++) {
    all.push({ most: `${step.most}`, tip: `${step.tip}` })
    step = { most: times(step.most, stepFactor), tip: times(step.tip, stepFactor) }
  }
  const [first, ...rest] = all
  if (first !== undefined) return Either.right([first, ...rest])
  if (cap !== undefined && cap >= baseFee + tip) return Either.right([{ most: `${cap}`, tip: `${tip}` }])
  const dear = `A unit of gas costs ${gwei(baseFee + tip)} gwei at present, above --max-fee-gwei: wait until it is cheaper, or allow more.`
  return Either.left(collectRefusal(dear))
}

/** The fee of data may rise by half until it is paid. */
export const withDataMargin = (fee: bigint): bigint => times(fee, firstFactor)

/** Bytes of a transaction with so many authorizations, about: each is a call of 292 bytes in Multicall3's list. */
export const batchBytes = (authorizations: number): number => 400 + 500 * authorizations
/** Bytes of a transfer of a token, signed, at most. */
export const singleBytes = 200
