import type { Effect } from "effect"
import type { ChainSettings } from "../../Settings.ts"
import type { AddressSet } from "../ledger/AddressSet.ts"
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
const maxReceivers = 500

const topicOf = (address: string): string => `0x${address.slice(2).padStart(64, "0")}`

/** Transfer logs of these contracts to these receivers; to any receiver when they are too many for one filter. */
export const transferFilter = (contracts: Iterable<string>, receivers: AddressSet): LogFilter => ({
  address: [...contracts],
  topics: [transferTopic, ...(receivers.size <= maxReceivers ? [null, Array.from(receivers, topicOf)] : [])]
})

/** Providers that silently truncate a response do so at a multiple of this. */
const roundCount = 1_000

/** The error of a response that may be truncated, which has exactly as many logs as a provider may allow. */
export const truncationOf = ({ host }: RpcClient, { length }: ReadonlyArray<unknown>): RpcError | undefined => {
  if (length === 0 || length % roundCount !== 0) return undefined
  const detail = `exactly ${length} logs came, and more may have been left out`
  return new RpcError({ host, method: "eth_getLogs", reason: "range", detail })
}
