import type { Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { AddressSet } from "../ledger/AddressSet.ts"
import { refusals } from "../providers/BlockRange.ts"
import type { LogFilter } from "../rpc/methods.ts"
import { transferTopic } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { RpcError } from "../rpc/RpcError.ts"
import type { Contracts } from "./transfers.ts"

/** What to read a chain for, and from whom. */
export interface ScanSource {
  readonly client: RpcClient
  readonly chain: ChainSettings
  readonly contracts: Contracts
  readonly watched: AddressSet
  /** The provider could not give a single block when it was last asked for one. */
  readonly stuck?: boolean
  /** Another provider of the chain, to ask for what this one may have left out; undefined where none can be used. */
  readonly other?: Effect.Effect<RpcClient | undefined>
}

/** Receivers in one filter. Longer lists are refused by some providers. */
export const maxReceivers = 500

const topicOf = (address: string): string => `0x${address.slice(2).padStart(64, "0")}`

/** Transfers by some contracts to some receivers; to anybody without them. */
export const transferFilter = (contracts: Iterable<string>, receivers?: Iterable<string>): LogFilter => ({
  address: [...contracts],
  topics: [transferTopic, ...(receivers === undefined ? [] : [null, Array.from(receivers, topicOf)])]
})

/** The receivers to filter by; undefined when they are too many for one filter, and looked for in all transfers. */
export const receiversOf = ({ watched }: ScanSource): Iterable<string> | undefined =>
  watched.size <= maxReceivers ? watched : undefined

/** The limits of providers that cut an answer without a word are round. */
const roundCount = 1_000

/** An answer that has exactly as many logs as a provider may allow: there may be more of them. */
export const mayBeCut = (logs: ReadonlyArray<unknown>): boolean => logs.length > 0 && logs.length % roundCount === 0

/** What stands in the place of such an answer. */
export const cutAnswer = (client: RpcClient, logs: ReadonlyArray<unknown>): RpcError =>
  new RpcError({
    host: client.host,
    method: "eth_getLogs",
    reason: "range",
    detail: `exactly ${logs.length} logs came, and more may have been left out`
  })

/**
 * Whether a block whose logs were not given is to be read in parts. At once where the provider has refused. One that has
 * not answered, or wants to be left alone, is given another try first, and another provider the turn.
 */
export const needsParts = (
  { stuck = false }: ScanSource,
  after: BlockRef,
  last: BlockRef,
  error: RpcError
): boolean => {
  const isAtOnce = refusals.has(error.reason) && error.retryAfter === undefined
  const isLater = stuck && (refusals.has(error.reason) || error.reason === "timeout" || error.reason === "http")
  return last.number === after.number + 1 && error.method.includes("eth_getLogs") && (isAtOnce || isLater)
}
