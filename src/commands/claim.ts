import { Args, Command, HelpDoc } from "@effect/cli"
import { Effect } from "effect"
import { Claim } from "../Control/controlRequests.ts"
import type { NamedNetwork } from "../Domain/amountDecimals.ts"
import { amountsAt, type ShowAmount } from "./amounts.ts"
import { askDaemon } from "./askDaemon.ts"
import { common, controlTargetOf } from "./commonOptions.ts"
import { print } from "./Output.ts"
import { chain, checkConfigured, mode } from "./options.ts"

const txHash = Args.text({ name: "TXHASH" }).pipe(
  Args.withDescription("The transaction: 0x and 64 hex digits"),
  Args.mapEffect((text) =>
    /^0x[0-9a-fA-F]{64}$/.test(text)
      ? Effect.succeed(text.toLowerCase())
      : Effect.fail(HelpDoc.p("TXHASH must be the hash of a transaction: 0x and 64 hex digits"))
  )
)

const rendered = (
  { added, blockNumber, credits }: typeof Claim.success.Type,
  network: NamedNetwork,
  show: ShowAmount
): string =>
  [
    `It is in block ${blockNumber}; ${added === 0 ? "the ledger had all of it already, and tilld payments show says whether it counts" : `new receipts: ${added}`}`,
    ...credits.map(
      (credit) =>
        `${show(network, credit)} to ${credit.address}: ${credit.payment ?? "a payment that this database has never known"}`
    )
  ].join("\n")

/** `tilld claim`: counts the money of one transaction. */
export const claimCommand = Command.make(
  "claim",
  { ...common, chain, mode, txHash },
  Effect.fnUntraced(function* ({ chain, mode, txHash, ...options }) {
    const place = yield* controlTargetOf(options)
    yield* checkConfigured(place, { chain, mode })
    const claimed = yield* askDaemon(place, "claim", new Claim({ chain, mode, txHash }))
    if (options.json) return yield* print(JSON.stringify({ txHash, ...claimed }))
    yield* print(rendered(claimed, { chain, mode }, yield* amountsAt(place)))
  })
).pipe(
  Command.withDescription(
    "Count the money of one transaction that was missed, or say why it pays no address of this tilld"
  )
)
