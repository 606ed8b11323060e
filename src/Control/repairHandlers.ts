import { Effect } from "effect"
import { getAddress, type Hex } from "viem"
import { claim } from "../Chains/repair/claim.ts"
import { rescan } from "../Chains/repair/rescan.ts"
import { Chains } from "../Chains.ts"
import { RepairRefused } from "../Domain/RepairErrors.ts"
import { StoreUnavailable } from "../Sql.ts"
import { administering } from "./controlHandler.ts"
import * as Requests from "./controlRequests.ts"

/** Why a repair failed, for the operator. */
const refused = <E extends { readonly message: string }>(error: E | StoreUnavailable | RepairRefused) =>
  error instanceof StoreUnavailable || error instanceof RepairRefused
    ? error
    : new RepairRefused({ message: error.message })

/** The daemon has 40 seconds for a request, and a part of a range that fails is retried for 20. */
const rescanBudget = "5 seconds"

export const rescanBlocks = administering(
  Requests.Rescan,
  ({ chain, from, mode, to }) => ({ act: "rescan", detail: { chain, mode, from, to } }),
  Effect.fnUntraced(function* ({ chain, from, mode, to }) {
    const chains = yield* Chains
    const exclusively = chains.exclusively({ chain, mode })
    const range = { from, ...(to === undefined ? {} : { to }) }
    return yield* Effect.mapError(rescan(exclusively, range, rescanBudget), refused)
  })
)

export const claimTransaction = administering(
  Requests.Claim,
  ({ chain, mode, txHash }) => ({ act: "claim", detail: { chain, mode, txHash } }),
  Effect.fnUntraced(function* ({ chain, mode, txHash }) {
    const chains = yield* Chains
    const found = yield* Effect.mapError(claim(chains.exclusively({ chain, mode }), txHash), refused)
    const credits = found.credits.map(({ address, amount, currency, payment }) => ({
      address: getAddress(address as Hex),
      currency,
      amount: amount.toString(),
      ...(payment === undefined ? {} : { payment })
    }))
    return { ...found, credits }
  })
)
