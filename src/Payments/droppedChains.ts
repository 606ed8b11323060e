import { Data, Effect, Layer } from "effect"
import { type Network, networkKey } from "../Domain/Chain.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import * as Repo from "./PaymentsRepo.ts"
import * as Undecided from "./UndecidedRepo.ts"

/** The configuration no longer has a chain with open payments, or with money that nobody would decide on any more. */
export class ChainDropped extends Data.TaggedError("ChainDropped")<{ readonly message: string }> {}

/** Payments whose undecided money the message lists at most, by network. */
const mostListed = 10

const undecidedText = (ids: ReadonlyArray<string>): string =>
  `not yet corroborated money of ${ids.slice(0, mostListed).join(", ")}${ids.length > mostListed ? " and more" : ""}`

/** Refuses to start where a chain with open payments, or with undecided money, is not configured. */
export const refuseDroppedChains = Layer.effectDiscard(
  Effect.gen(function* () {
    const { chains } = yield* Settings
    const reader = yield* Reader
    const watched = new Set(chains.map(networkKey))
    const dropped = new Map<string, { readonly network: Network; readonly why: ReadonlyArray<string> }>()
    const add = (network: Network, reason: string) => {
      const key = networkKey(network)
      if (!watched.has(key)) dropped.set(key, { network, why: [...(dropped.get(key)?.why ?? []), reason] })
    }
    for (const { chain, mode, payments } of yield* Repo.openByNetwork(reader)) add({ chain, mode }, `${payments} open`)
    for (const { chain, mode, payments } of yield* Undecided.byNetwork(reader)) {
      add({ chain, mode }, undecidedText(payments))
    }
    if (dropped.size === 0) return
    const each = [...dropped].map(([key, { why }]) => `chains.${key} (${why.join("; ")})`).join(", ")
    const commands = [...dropped.values()].map(
      ({ network: { chain, mode } }) => `tilld payments abandon --chain ${chain} --mode ${mode}`
    )
    return yield* new ChainDropped({
      message:
        `Payments are open, or money is undecided, on chains that the configuration no longer has: ${each}. Put them ` +
        `back until that is over, or let the payments fail and give up the money: ${commands.join("; ")}`
    })
  })
)
