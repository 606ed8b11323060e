/** The transfer of a token that a log shows: of a receipt, or of a simulation. */
import { Schema } from "effect"
import { Address, Hash, transferTopic } from "./methods.ts"

/** The parts of a log that its contract has chosen. */
export const ContractLog = Schema.Struct({ address: Address, topics: Schema.Array(Hash), data: Schema.String })

/** Addresses are in lower case, `amount` in base units. */
export interface TokenTransfer {
  readonly contract: string
  readonly from: string
  readonly to: string
  readonly amount: bigint
}

/** None, or the one transfer: none where a log is of another event, or has not the standard's form. */
export const transferIn = ({
  address: contract,
  data,
  topics: [kind, from, to]
}: typeof ContractLog.Type): ReadonlyArray<TokenTransfer> =>
  kind === transferTopic && from !== undefined && to !== undefined && /^0x[0-9a-fA-F]{64}$/.test(data)
    ? [{ contract, from: `0x${from.slice(26)}`, to: `0x${to.slice(26)}`, amount: BigInt(data) }]
    : []
