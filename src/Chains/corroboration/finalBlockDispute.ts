import { Duration, Effect, Either } from "effect"
import type { Provider } from "../providers/Providers.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import { RpcError } from "../rpc/RpcError.ts"
import type { WatchContext } from "../scan/WatchContext.ts"

/** What came of a question about a final block: who has it otherwise than two providers, or that nobody can tell. */
export type Dispute =
  | { readonly _tag: "None" }
  | { readonly _tag: "Wrong"; readonly provider: Provider; readonly error: RpcError }
  | { readonly _tag: "Open"; readonly reason: string }

const hashAt = ({ client }: Provider, number: number) =>
  Effect.map(Effect.either(sendBatch(client, [findHeader(number)])), (found) =>
    Either.isRight(found) ? found.right[0]?.hash : undefined
  )

/** For how long a provider that is wrong about a final block is left alone: another one serves from then on. Milliseconds. */
const leftAlone = Duration.toMillis("5 minutes")

const wrong = (provider: Provider, number: number, theirs: string, hash: string): Dispute => ({
  _tag: "Wrong",
  provider,
  error: new RpcError({
    host: provider.client.host,
    method: "eth_getBlockByNumber",
    reason: "inconsistent",
    retryAfter: leftAlone,
    detail: `the final block ${number} is ${theirs} to it, and ${hash} to two other providers`
  })
})

/**
 * Who is wrong about a final block that two providers have otherwise. Neither is put aside for the other's word: a third
 * one is asked, and where there is none, or it has a block of its own, the dispute stays open.
 */
export const settleDispute = Effect.fn("Chains.settleDispute")(function* (
  { providers }: WatchContext,
  serving: Provider,
  other: Provider,
  number: number
) {
  const [ours, theirs] = [yield* hashAt(serving, number), yield* hashAt(other, number)]
  if (ours === undefined || theirs === undefined || ours === theirs) return { _tag: "None" } satisfies Dispute
  for (const third of yield* providers.others(serving)) {
    if (third === other) continue
    const hash = yield* hashAt(third, number)
    if (hash === ours) return wrong(other, number, theirs, hash)
    if (hash === theirs) return wrong(serving, number, ours, hash)
  }
  const reason = `${serving.client.host} and ${other.client.host} disagree about the final block ${number}: one of them serves false blocks. Remedy: add a third provider to rpc_urls, or another one in the place of the wrong one`
  return { _tag: "Open", reason } satisfies Dispute
})
