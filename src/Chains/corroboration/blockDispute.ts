import { Duration, Effect, Either } from "effect"
import { Ballot, yes } from "../evidence/Ballot.ts"
import type { Provider } from "../providers/Providers.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent, type RpcError } from "../rpc/RpcError.ts"
import type { WatchContext } from "../scan/WatchContext.ts"

/**
 * The outcome of a dispute about a deep block. `None`: both providers have the same block, or one gives none. `Wrong`:
 * the provider that two others contradict. `Open`: it cannot be decided.
 */
export type Dispute =
  | { readonly _tag: "None" }
  | { readonly _tag: "Wrong"; readonly provider: Provider; readonly error: RpcError }
  | { readonly _tag: "Open"; readonly reason: string }

/** The provider's hash of the block with this number; undefined where it gives none. */
const hashAt = ({ client }: Provider, number: number) =>
  Effect.map(Effect.either(sendBatch(client, [findHeader(number)])), (found) =>
    Either.isRight(found) ? found.right[0]?.hash : undefined
  )

/** Cooldown of a provider that is wrong about a deep block, milliseconds: another one serves meanwhile. */
const wrongBlockCooldown = Duration.toMillis("5 minutes")

/** The error of a provider that has another block at a settled height than two others. */
export const wrongBlock = ({ client }: Provider, number: number, theirs: string, hash: string): RpcError =>
  inconsistent(
    client,
    "eth_getBlockByNumber",
    `it reports block ${number} as ${theirs}; two other providers report ${hash}`,
    wrongBlockCooldown
  )

/**
 * Decides which of two providers is wrong about a deep block. One provider's claim does not discredit the other: a
 * third one is asked. Where there is none, or it has yet another block, the dispute stays open. Called by
 * `verificationPass.ts`.
 */
export const settleDispute = Effect.fn("Chains.settleDispute")(function* (
  { providers }: WatchContext,
  serving: Provider,
  other: Provider,
  number: number
) {
  const ballot = new Ballot<number, string, Provider>()
  for (const provider of [serving, other]) {
    const hash = yield* hashAt(provider, number)
    if (hash === undefined) return { _tag: "None" } satisfies Dispute
    ballot.vote(number, provider, yes(hash))
  }
  if (ballot.tally(number).outcome === "shown") return { _tag: "None" } satisfies Dispute
  for (const third of yield* providers.others(serving)) {
    const hash = third === other ? undefined : yield* hashAt(third, number)
    if (hash === undefined) continue
    ballot.vote(number, third, yes(hash))
    const { agreed, claims, outcome } = ballot.tally(number)
    const outvoted = claims.find(({ by, value }) => by !== third && value !== agreed[0]?.value)
    if (outcome === "shown" && outvoted !== undefined) {
      const { by, value } = outvoted
      return { _tag: "Wrong", provider: by, error: wrongBlock(by, number, value, hash) } satisfies Dispute
    }
  }
  const reason = `${serving.client.host} and ${other.client.host} disagree about the deep block ${number}: one of them serves false blocks. Remedy: add another provider to rpc_urls, or replace the wrong one`
  return { _tag: "Open", reason } satisfies Dispute
})
