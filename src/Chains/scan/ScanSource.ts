import type { Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { AddressSet } from "../ledger/AddressSet.ts"
import { refusals } from "../providers/BlockRange.ts"
import { type LogFilter, transferTopic } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { RpcError } from "../rpc/RpcError.ts"
import type { Contracts } from "./transfers.ts"

/** What to scan blocks for, and the provider to read them from. */
export interface ScanSource {
  readonly client: RpcClient
  readonly chain: ChainSettings
  readonly contracts: Contracts
  readonly watched: AddressSet
  /** The provider failed at a range of a single block in its last attempt. */
  readonly stuck?: boolean
  /** Another provider of the chain, to check for omitted logs; undefined where none can be used. */
  readonly other?: Effect.Effect<RpcClient | undefined>
}

/** Receivers in one filter. Longer lists are refused by some providers. */
export const maxReceivers = 500

const topicOf = (address: string): string => `0x${address.slice(2).padStart(64, "0")}`

/** Transfer logs of these contracts to these receivers; to any receiver when they are too many for one filter. */
export const transferFilter = (
  contracts: Iterable<string>,
  receivers: AddressSet | ReadonlyArray<string>
): LogFilter => {
  const isFew = !("size" in receivers) || receivers.size <= maxReceivers
  return { address: [...contracts], topics: [transferTopic, ...(isFew ? [null, Array.from(receivers, topicOf)] : [])] }
}

/** Providers that silently truncate a response do so at a multiple of this. */
const roundCount = 1_000

/** The error of a response that may be truncated, which has exactly as many logs as a provider may allow. */
export const truncationOf = ({ host }: RpcClient, { length }: ReadonlyArray<unknown>): RpcError | undefined => {
  if (length === 0 || length % roundCount !== 0) return undefined
  const detail = `exactly ${length} logs came, and more may have been left out`
  return new RpcError({ host, method: "eth_getLogs", reason: "range", detail })
}

/**
 * Whether to read a single block in parts after an error. At once where the provider refused its logs. After a timeout,
 * an HTTP error or a retry-after, only when the block fails again: first it is retried, by another provider if there is
 * one.
 */
export const needsParts = (
  { stuck = false }: ScanSource,
  after: BlockRef,
  last: BlockRef,
  error: RpcError
): boolean => {
  const { method, reason, retryAfter } = error
  const isAtOnce = refusals.has(reason) && retryAfter === undefined
  const isLater = stuck && (refusals.has(reason) || reason === "timeout" || reason === "http")
  return last.number === after.number + 1 && method.includes("eth_getLogs") && (isAtOnce || isLater)
}
