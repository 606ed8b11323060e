import { Command } from "@effect/cli"
import { jumpAddresses } from "../Payments/addresses/jumpOperation.ts"
import { table } from "./Output.ts"
import { commandOf } from "./operationCommand.ts"

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

/** `tilld addresses`: the numbering of receiving addresses. */
export const addresses = Command.make("addresses").pipe(
  Command.withDescription("Receiving addresses"),
  Command.withSubcommands([jump])
)
