import { Args, Command, HelpDoc } from "@effect/cli"
import { Effect } from "effect"
import { Claim } from "../Control/controlRequests.ts"
import { askDaemon } from "./askDaemon.ts"
import { common, placeOf } from "./commonOptions.ts"
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

const rendered = ({ added, blockNumber, credits }: typeof Claim.success.Type): string =>
  [
    `It is in block ${blockNumber}; ${added === 0 ? "all of it was counted already" : `new receipts: ${added}`}`,
    ...credits.map(
      ({ address, amount, currency, payment }) =>
        `${amount} ${currency} to ${address}: ${payment ?? "a payment that this database has never known"}`
    )
  ].join("\n")

export const claimCommand = Command.make(
  "claim",
  { ...common, chain, mode, txHash },
  Effect.fnUntraced(function* ({ chain, mode, txHash, ...options }) {
    const place = yield* placeOf(options)
    yield* checkConfigured(place, { chain, mode })
    const claimed = yield* askDaemon(place, "claim", new Claim({ chain, mode, txHash }))
    yield* print(options.json ? JSON.stringify({ txHash, ...claimed }) : rendered(claimed))
  })
).pipe(Command.withDescription("Count the money of one transaction that was not seen, or tell why it pays nobody here"))
