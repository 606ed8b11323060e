import { Data, Effect, Layer } from "effect"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import { type OpenNeed, selectOpenNeeds } from "./OpenNeedsRepo.ts"
import { decimalsNow, unmetNeeds } from "./openNeeds.ts"

/** The configuration no longer has a chain, or a token's contract, that open payments need. */
export class ChainDropped extends Data.TaggedError("ChainDropped")<{ readonly message: string }> {}

/** Refuses to start without what open payments need. */
export const refuseDroppedChains = Layer.effectDiscard(
  Effect.gen(function* () {
    const { chains } = yield* Settings
    const reader = yield* Reader
    const unmet = unmetNeeds(chains, yield* reader.all<OpenNeed>(selectOpenNeeds, [decimalsNow(chains)]))
    if (unmet.length === 0) return
    const lines = unmet.map(({ at, need, remedy }) => `  ${at}: ${need}: ${remedy}`)
    return yield* new ChainDropped({
      message: ["The configuration lacks what payments need:", ...lines].join("\n")
    })
  })
)
