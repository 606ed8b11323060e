import { Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { farthestJump, JumpAddresses } from "../Control/controlRequests.ts"
import { blindJump } from "../Payments/addresses/IndexMark.ts"
import { common } from "./commonOptions.ts"
import { table } from "./Output.ts"
import { refuse } from "./options.ts"
import { printResult } from "./result.ts"

const by = Options.integer("by").pipe(
  Options.withPseudoName("N"),
  Options.withDescription(`How many addresses to skip, 1 to ${farthestJump}; otherwise ${blindJump}`),
  Options.withDefault(blindJump),
  Options.mapEffect((count) =>
    count >= 1 && count <= farthestJump ? Effect.succeed(count) : refuse(`--by must be 1 to ${farthestJump}`)
  )
)

const jump = Command.make("jump", { ...common, by }, ({ by, ...options }) =>
  printResult(options, "addresses jump", new JumpAddresses({ by }), (jumped) =>
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
  )
).pipe(
  Command.withDescription(
    "Skip addresses of every wallet, and watch them: after a snapshot of the whole machine was restored, which tilld cannot tell"
  )
)

/** `tilld addresses`: the numbering of receiving addresses. */
export const addresses = Command.make("addresses").pipe(
  Command.withDescription("Receiving addresses"),
  Command.withSubcommands([jump])
)
