/**
 * Tokens at skipped addresses: addresses that a lost copy of the database may have handed out, so that payers may have
 * used them before they were watched. Compares token balances with the ledger, searches logs backwards for what is
 * missing, and claims the transactions found; what is left without a log within reach, the audit tells. The watcher's
 * maintenance calls it.
 */
import { Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import * as Audit from "../balances/AuditRepo.ts"
import { holdingKey, readHoldings } from "../balances/holdings.ts"
import { AddressSet } from "../ledger/AddressSet.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import { rangeErrors } from "../providers/BlockRange.ts"
import type { Provider } from "../providers/Providers.ts"
import { badResponse, getLogs, sendBatch } from "../rpc/methods.ts"
import { transferFilter } from "../scan/ScanSource.ts"
import { transfersAmong } from "../scan/transfers.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { claimOnce } from "./claim.ts"

/** Blocks of one call, for the logs of a few receivers; fewer where the provider refuses. */
const blocksPerCall = 10_000
/** Maximum calls for one page of addresses: bounds how far back logs are searched. */
const maxCalls = 200

/** An amount of a token that an address holds and the ledger lacks. */
interface Missing {
  /** Lower case. */
  readonly address: string
  readonly contract: string
  readonly currency: string
  /** Base units. */
  readonly amount: bigint
}

const missingOf = Effect.fnUntraced(function* (
  { contracts, network, reader }: WatchContext,
  { client }: Provider,
  head: BlockRef,
  skipped: ReadonlyArray<string>
) {
  const assets = Array.from(contracts, ([contract, symbol]) => ({ contract, symbol }))
  const holdings = yield* readHoldings(client, assets, skipped, head)
  const recorded = yield* Audit.recorded(reader, network, skipped, head, holdingKey)
  return skipped.flatMap((address) =>
    assets.flatMap(({ contract, symbol: currency }): ReadonlyArray<Missing> => {
      const key = holdingKey(currency, address)
      const amount = (holdings.get(key) ?? 0n) - (recorded.get(key) ?? 0n)
      return amount > 0n ? [{ address: address.toLowerCase(), contract, currency, amount }] : []
    })
  )
})

/** The transactions that transferred the missing tokens, newest first. */
const search = Effect.fnUntraced(function* (
  { contracts }: WatchContext,
  { client }: Provider,
  head: BlockRef,
  missing: ReadonlyArray<Missing>
) {
  const left = new Map(missing.map((one) => [`${one.address} ${one.currency}`, one]))
  const watched = new AddressSet()
  for (const { address } of missing) watched.add(address)
  const filter = transferFilter(new Set(missing.map(({ contract }) => contract)), watched)
  const found = new Map<string, Transfer>()
  let [to, size] = [head.number, blocksPerCall]
  for (let calls = 0; calls < maxCalls && to > 0 && left.size > 0; calls++) {
    const from = Math.max(1, to - size + 1)
    const call = getLogs(from, to, filter)
    const logs = yield* Effect.either(sendBatch(client, [call]))
    if (Either.isLeft(logs)) {
      const { maxBlocks, reason } = logs.left
      if (!rangeErrors.has(reason) || size === 1) return yield* logs.left
      size = Math.max(1, Math.min(maxBlocks ?? size, Math.floor(size / 2)))
      continue
    }
    const transfers = yield* Effect.mapError(transfersAmong(logs.right[0], contracts, watched), (detail) =>
      badResponse(client, call, detail)
    )
    for (const transfer of transfers) {
      const { address, amount, currency, txHash } = transfer
      const key = `${address} ${currency}`
      const one = left.get(key)
      if (one === undefined) continue
      found.set(txHash, transfer)
      if (amount < one.amount) left.set(key, { ...one, amount: one.amount - amount })
      else left.delete(key)
    }
    to = from - 1
  }
  return found
})

/**
 * Finds tokens that skipped addresses received before they were watched, and claims their transactions as `tilld claim`
 * does. Costs one call per token where balances show that nothing is missing.
 */
export const findSkippedTokens = Effect.fn("Repair.findSkippedTokens")(function* (
  watch: WatchContext,
  provider: Provider,
  head: BlockRef,
  skipped: ReadonlyArray<string>
) {
  const missing = yield* missingOf(watch, provider, head, skipped)
  if (missing.length === 0) return
  const found = yield* search(watch, provider, head, missing)
  for (const [hash, transfer] of found) {
    yield* Effect.catchTag(claimOnce(watch, provider, hash, transfer), "RepairRefused", ({ message }) =>
      Effect.logWarning("money at a skipped address could not be claimed").pipe(Effect.annotateLogs({ hash, message }))
    )
  }
})
