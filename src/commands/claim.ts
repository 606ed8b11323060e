import { Effect } from "effect"
import { claimTransaction } from "../Chains/repairOperations.ts"
import { amountsAt } from "./amounts.ts"
import { commandOf } from "./operationCommand.ts"

/** `tilld claim`: counts the money of one transaction. */
export const claimCommand = commandOf(claimTransaction, {
  print: ({ added, blockNumber, credits }, network, place) =>
    Effect.map(amountsAt(place), (show) =>
      [
        `It is in block ${blockNumber}; ${added === 0 ? "the ledger had all of it already, and tilld payments show says whether it counts" : `new receipts: ${added}`}`,
        ...credits.map(
          (credit) =>
            `${show(network, credit)} to ${credit.address}: ${credit.payment ?? "a payment that this database has never known"}`
        )
      ].join("\n")
    )
})
