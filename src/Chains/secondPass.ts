import { Effect } from "effect"
import { Tx } from "../Sql.ts"
import { ask, getHeader, type Header } from "./calls.ts"
import type { DatedTransfer } from "./LedgerRepo.ts"
import * as Ledger from "./LedgerRepo.ts"
import type { Provider } from "./Providers.ts"
import { RpcError } from "./Rpc.ts"
import { readTokens } from "./range.ts"
import { isAlone, sourceOf, type Watch } from "./tick.ts"

/** On a chain without the tag, what is this many times deeper than its confirmations counts as final. */
const finalDepths = 4
/** Reorgs above this block are still to be expected, below it they are an alarm. */
export const finalNumber = (watch: Watch, head: number, finalized: number | undefined): number =>
  Math.min(head, finalized ?? head - finalDepths * watch.chain.confirmations)

/** Those that the ledger does not count yet. Each must be in the block that `provider`, which has read it first, has. */
const missed = (watch: Watch, provider: Provider, transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.gen(function* () {
    const known = yield* Ledger.countedKeys(watch.reader, watch.network, transfers)
    const unknown = transfers.filter((transfer) => !known.has(Ledger.keyOf(transfer)))
    const headers = yield* ask(
      provider.client,
      unknown.map((transfer) => getHeader(transfer.blockNumber))
    )
    const stranger = unknown.find((transfer, i) => headers[i]?.hash !== transfer.blockHash)
    if (stranger !== undefined) {
      return yield* new RpcError({
        host: provider.client.host,
        method: "eth_getLogs",
        reason: "inconsistent",
        detail: `two providers have different blocks ${stranger.blockNumber}, which should be final`
      })
    }
    return unknown
  })

/** `waits`: for another provider, which only `patient` allows. `more`: final blocks are left to be read. */
type Passed = "waits" | "more" | "done"

/**
 * Reads blocks that have become final again, from another provider where there is one: a node that answered with too few
 * logs when they were new is not believed for ever. One span at a time.
 */
export const secondPass = Effect.fn("Watcher.secondPass")(function* (
  watch: Watch,
  provider: Provider,
  finalized: Header | undefined,
  patient: boolean
) {
  const { network, providers, reader, settlement, watched, writer } = watch
  const scan = yield* Ledger.scan(reader, network)
  if (scan === undefined) return "done" satisfies Passed
  const final = finalNumber(watch, scan.head.number, finalized?.number)
  if (final <= scan.verified) return "done" satisfies Passed
  const second = yield* providers.other(provider)
  if (second === undefined && !isAlone(watch) && patient) return "waits" satisfies Passed
  const other = second ?? provider
  const to = Math.min(final, scan.verified + other.span.blocks)
  const found =
    watched.size === 0
      ? []
      : yield* Effect.gen(function* () {
          const [last] = to === finalized?.number ? [finalized] : yield* ask(provider.client, [getHeader(to)])
          const after = { number: scan.verified, hash: "", time: 0 }
          return yield* missed(watch, provider, yield* readTokens(sourceOf(watch, other), after, last))
        }).pipe(
          Effect.tapErrorTag("RpcError", (error) => {
            other.span.failed(error)
            return other === provider ? Effect.void : providers.failed(other, error)
          })
        )
  if (found.length > 0) {
    yield* Effect.logWarning("the second pass found what a provider had left out").pipe(
      Effect.annotateLogs({ host: other.client.host, transactions: found.map(({ txHash }) => txHash).join(", ") })
    )
  }
  yield* writer.write(
    Effect.gen(function* () {
      const now = yield* Ledger.scan(yield* Tx, network)
      if (now === undefined || now.head.hash !== scan.head.hash) return
      const touched = yield* Ledger.keepReceipts(network, found, isAlone(watch))
      yield* Ledger.moveVerified(network, to)
      yield* settlement.settle({ network, head: now.head }, touched)
    })
  )
  const passed: Passed = to < final ? "more" : "done"
  return passed
})
