import { Data, Effect, Layer } from "effect"
import { networkKey } from "../Domain/Chain.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import * as Repo from "./PaymentsRepo.ts"

/** The configuration no longer has a chain with open payments: their money would not be seen. */
export class ChainDropped extends Data.TaggedError("ChainDropped")<{ readonly message: string }> {}

/** Refuses to start where a chain with open payments is not configured. */
export const refuseDroppedChains = Layer.effectDiscard(
  Effect.gen(function* () {
    const { chains } = yield* Settings
    const watched = new Set(chains.map(networkKey))
    const open = yield* Repo.openByNetwork(yield* Reader)
    const dropped = open.filter((network) => !watched.has(networkKey(network)))
    if (dropped.length === 0) return
    const each = dropped.map((network) => `chains.${networkKey(network)} (${network.payments} open)`).join(", ")
    const commands = dropped.map(({ chain, mode }) => `tilld payments abandon --chain ${chain} --mode ${mode}`)
    return yield* new ChainDropped({
      message:
        `Payments are open on chains that the configuration no longer has: ${each}. Put them back until those ` +
        `payments have ended, or let them fail: ${commands.join("; ")}`
    })
  })
)
