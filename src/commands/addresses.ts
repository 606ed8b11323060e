import { Command } from "@effect/cli"
import { jumpAddresses } from "../Payments/addresses/jumpOperation.ts"
import { table } from "./Output.ts"
import { commandOf } from "./operationCommand.ts"
import { unswept } from "./unswept.ts"

const jump = commandOf(jumpAddresses, {
  print: (jumped, { by }) =>
    jumped.length === 0
      ? `No wallet has been used yet; each begins ${by} further`
      : table(
          ["WALLET", "FROM", "NEXT INDEX", "USED BY"],
          jumped.map(({ from, next, usedBy, wallet }) => [
            wallet,
            `${from}`,
            `${next}`,
            usedBy.join(", ") || "nobody now"
          ])
        )
})

/** `tilld addresses`: what they hold, and their numbering. */
export const addresses = Command.make("addresses").pipe(
  Command.withDescription("Receiving addresses; tilld addresses --unswept is tilld addresses unswept"),
  Command.withSubcommands([unswept, jump])
)

/** `tilld addresses --unswept` is `tilld addresses unswept`. */
export const withUnswept = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words[2] !== "addresses" || words[3] !== "--unswept" ? words : [...words.slice(0, 3), "unswept", ...words.slice(4)]
