/**
 * The audit of balances: is there money on the chain at an address of ours that is in no row? Page by page, over a day, each
 * address that was ever given out is compared with the ledger after a block that has its confirmations, for the chain's coin and
 * its tokens. It finds what every other way has missed: what a rule of the scan overlooked, a row that was lost, money at an
 * address that is not watched any more.
 *
 * What is found is read again from all providers, and what two show counts. It is told once the block after which it was
 * first seen has been verified and it is still there: money under way is no finding. Coins are looked for again before, as a
 * sweep does, and those of open payments are left to its rounds. `maintenance` runs it.
 */
import { Array as Arr, Clock, Duration, Effect, Option } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { StoreUnavailable } from "../../Sql.ts"
import { quorum } from "../evidence/Ballot.ts"
import { inTime, type Provider } from "../providers/Providers.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcError } from "../rpc/RpcError.ts"
import { isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"
import * as Audit from "./AuditRepo.ts"
import * as Balances from "./BalancesRepo.ts"
import type { BalanceQuery } from "./discrepancy.ts"
import { assetsOf, holdingKey, readHoldings } from "./holdings.ts"

/** Addresses of a page: a call for the coin, and two for each token. */
const pageSize = 1000
/** All addresses are compared within a day, with these pauses between two pages at least and at most. */
const round = Duration.toMillis("1 day")
const longest = Duration.toMillis("1 hour")
/** Also between two looks at what was found, which ends soon after the ledger has it. */
const shortest = Duration.toMillis("5 minutes")

/**
 * Makes the audit of one network: an effect that compares the next page, if it is due.
 *
 * @param sweep compares coins at the head with the ledger, and stores what it lacks
 */
export const makeAudit = (
  watch: WatchContext,
  sweep: (
    provider: Provider,
    head: BlockRef,
    asked: ReadonlyArray<BalanceQuery>
  ) => Effect.Effect<unknown, RpcError | StoreUnavailable>
) => {
  const { chain, network, providers, reader, writer } = watch
  const coin = nativeToken(network.chain)
  const assets = assetsOf(chain)
  const symbols = new Map(chain.tokens.map(({ address, symbol }) => [address, symbol]))
  /** A payment that asks for a former contract has the money of the present one under its address. */
  const keyOf = (currency: string, address: string) => holdingKey(symbols.get(currency) ?? currency, address)
  /** When it was last tried, Unix milliseconds: not while the daemon starts, and a failure is not repeated at once. */
  let triedAt: number | undefined

  /** What one provider shows beyond the rows. */
  const excessBy = Effect.fnUntraced(function* ({ client }: Provider, addresses: ReadonlyArray<string>, at: BlockRef) {
    const holdings = yield* readHoldings(client, assets, addresses, at)
    const recorded = yield* Audit.recorded(reader, network, addresses, at, keyOf)
    return addresses.flatMap((address) =>
      assets.flatMap(({ symbol: currency }) => {
        const key = holdingKey(currency, address)
        const amount = (holdings.get(key) ?? 0n) - (recorded.get(key) ?? 0n)
        const allowed = (currency === coin && recorded.get(holdingKey("allowed", address))) || 0n
        return amount > allowed ? [{ address, currency, amount }] : []
      })
    )
  })

  /** What a quorum of the providers shows; undefined where too few answer. */
  const corroborated = Effect.fnUntraced(function* (
    all: ReadonlyArray<Provider>,
    addresses: ReadonlyArray<string>,
    at: BlockRef
  ) {
    const needed = isOnlyProvider(watch) ? 1 : quorum
    const ask = (one: Provider) => Effect.option(inTime(one, "eth_call", excessBy(one, addresses, at)))
    const shown = (yield* Effect.forEach(all, ask, { concurrency: "unbounded" })).flatMap(Option.toArray)
    if (shown.length < needed) return undefined
    const claims = Arr.groupBy(shown.flat(), ({ address, currency }) => keyOf(currency, address))
    return Object.values(claims).flatMap((some) =>
      some.toSorted((one, other) => (one.amount < other.amount ? 1 : -1)).slice(needed - 1, needed)
    )
  })

  const note = (reason?: string) => void watch.troubles.note("task audit of balances", reason)

  const audit = Effect.fn("Balances.audit")(function* (provider: Provider, head: BlockRef) {
    const now = yield* Clock.currentTimeMillis
    triedAt ??= now
    if (Math.abs(now - triedAt) < shortest) return
    const scan = yield* Audit.progress(reader, network)
    if (scan?.payments === undefined) return
    const known = (yield* Audit.found(reader)).filter((one) => one.chain === network.chain && one.mode === network.mode)
    const pause =
      known.length > 0 ? shortest : Math.min(longest, Math.max(shortest, (round * pageSize) / scan.payments))
    if (Math.abs(now - scan.at) < pause) return
    triedAt = now

    const page = yield* Audit.page(reader, scan.after, pageSize)
    let read = 0
    const next = page.filter(({ receipts }) => {
      read += receipts
      return read <= Audit.mostReceipts
    })
    // One that has more of them by itself is left out.
    const last = next.at(-1) ?? page[0]
    const after = next.length < pageSize && last === page.at(-1) ? "" : (last?.address ?? "")
    const addresses = next.flatMap(({ address, mode }) => (mode === network.mode ? [address] : []))
    const [at] = yield* sendBatch(provider.client, [getHeader(Math.max(0, head.number - chain.confirmations + 1))])
    const all = [...(yield* providers.others(provider)), provider].sort((one, other) => one.index - other.index)
    const first = all[Math.floor(now / round) % all.length] ?? provider
    const seen = yield* excessBy(first, addresses, at)
    const numbers = new Map(known.map((one) => [keyOf(one.currency, one.address), one.number]))
    const suspects = new Set([...seen, ...known].map(({ address }) => address))
    const coins = seen.filter((one) => one.currency === coin && !numbers.has(keyOf(coin, one.address)))
    if (coins.length > 0) {
      const at = coins.map(({ address }) => address)
      yield* sweep(provider, head, yield* Balances.endedQueries(reader, network, at))
    }
    const found = suspects.size === 0 ? [] : yield* corroborated(all, [...suspects], at)
    if (found === undefined) return note("one provider shows money that is in no row, and no second one answers")
    const findings = found.map(({ address, amount, currency }) => {
      const number = numbers.get(keyOf(currency, address))
      const isVerified = number !== undefined && (scan.verified >= number || watch.watched.size === 0)
      return { address, currency, amount, number: number ?? at.number, told: isVerified }
    })
    yield* writer.write(Audit.keep(network, suspects, findings, after, now))
    note()
  })
  // What keeps it from its work is shown until it has done some.
  return (provider: Provider, head: BlockRef) =>
    Effect.tapErrorTag(audit(provider, head), "RpcError", ({ summary }) => Effect.sync(() => note(summary)))
}
