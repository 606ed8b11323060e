/** What both a plan and its broadcast ask for: refunds, the wallet's extended public key, and that nothing is unseen. */
import { Array as Arr, Effect, Redacted } from "effect"
import type { PlannedRefund } from "../Collect/candidates.ts"
import { isSameAddress } from "../Domain/Address.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import { listReceived, readChain } from "../Payments/addresses/addressOperations.ts"
import type { ReceivedPayment } from "../Payments/addresses/receivedPayment.ts"
import { mostRefundsAsked, owedRefunds } from "../Payments/decisions/sweepRefunds.ts"
import { walletIdentity } from "../Settings/hdWallet.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask, type ControlTarget } from "./askDaemon.ts"
import { complain } from "./Output.ts"
import { readInput, UsageError } from "./options.ts"

/** What a plan pays of these, `exc_…` or `ref_…`, all of one network; or of all refunds that were noted for a receiver. */
export const owedIn = Effect.fnUntraced(function* (
  settings: SettingsShape,
  network: Network,
  asked: { readonly of: ReadonlyArray<string> } | { readonly all: true },
  { digest, isWaived }: { readonly isWaived: boolean; readonly digest?: string }
) {
  const requests = "all" in asked ? [{ all: true }] : Arr.chunksOf(asked.of, mostRefundsAsked).map((of) => ({ of }))
  const owed: Array<PlannedRefund> = []
  const problems = new Map<string, string>()
  for (const request of requests) {
    const found = yield* ask(settings, owedRefunds, { ...request, ...(digest === undefined ? {} : { digest }) })
    for (const { of, problem, ...one } of found) {
      const { address, amount, chain, currency, exception, index, kept, mode, notedTransactions, refund, to } = one
      if (problem !== undefined) problems.set(of, problem)
      const isHere = chain === network.chain && mode === network.mode
      if (problem !== undefined || ("all" in asked && !isHere)) continue
      if (!isHere) {
        return yield* new UsageError({ message: `${of} is on ${chain}.${mode}, not on ${networkKey(network)}` })
      }
      if (index === undefined || address === undefined || currency === undefined || refund === undefined) {
        return yield* new UsageError({ message: `The path of ${of}'s address is not known: send it back by hand` })
      }
      const undecidable = isWaived && one.undecidable?.isWaivable ? undefined : one.undecidable?.message
      owed.push({
        ...{ id: refund, of, exception, to, address, index, currency, notedTransactions, undecidable },
        ...{ amount: BigInt(amount ?? 0), kept: BigInt(kept ?? 0) }
      })
    }
  }
  return { owed, problems }
})

/** What a plan is to pay, each of which has to be owed. */
export const refundsOf = Effect.fnUntraced(function* (
  settings: SettingsShape,
  network: Network,
  ids: ReadonlyArray<string>,
  isWaived: boolean
) {
  if (ids.length === 0) return []
  const asked = ids.includes("all") ? { all: true as const } : { of: ids }
  const { owed, problems } = yield* owedIn(settings, network, asked, { isWaived })
  const [problem = owed.length === 0 ? "No refund on this chain was noted with a receiver" : undefined] =
    problems.values()
  return problem === undefined ? owed : yield* new UsageError({ message: problem })
})

/** All receiving addresses to which money came on a chain, page by page. */
export const allReceived = Effect.fn("commands.allReceived")(function* (
  place: ControlTarget,
  network: Network,
  account: string | undefined
) {
  const found: Array<ReceivedPayment> = []
  let after: number | undefined = 0
  while (after !== undefined) {
    const page: { readonly addresses: ReadonlyArray<ReceivedPayment>; readonly next?: number } = yield* ask(
      place,
      listReceived,
      { ...network, after, ...(account === undefined ? {} : { account }) }
    )
    found.push(...page.addresses)
    after = page.next
  }
  return found
})

/** The same; at those named, or at "all", nothing waits. */
export const receivedBut = Effect.fnUntraced(function* (
  settings: SettingsShape,
  network: Network,
  included: ReadonlyArray<string>
) {
  const received = yield* allReceived(settings, network, undefined)
  const isAt = (named: string) => (one: ReceivedPayment) => named === "all" || isSameAddress(named, one.address)
  const unknown = included.find((named) => named !== "all" && !received.some(isAt(named)))
  if (unknown !== undefined) {
    const message = `--include-open ${unknown}: no money came to such an address on ${networkKey(network)}; name one that tilld addresses shows, or all`
    return yield* new UsageError({ message })
  }
  return received.map((one) => (included.some((named) => isAt(named)(one)) ? { ...one, isOpen: false, held: [] } : one))
})

/** The extended public key: of a file, or the configuration's. */
export const xpubOf = Effect.fnUntraced(function* (
  settings: SettingsShape,
  mode: Network["mode"],
  file: string | undefined
) {
  const given = file === undefined ? undefined : yield* readInput(file)
  const configured = settings.wallets[mode]
  const xpub = given ?? (configured && Redacted.value(configured))
  if (xpub === undefined) {
    return yield* new UsageError({
      message: `wallets.${mode} is not configured: name the key of the wallet with --xpub`
    })
  }
  // Never shown: with one child private key it gives every key.
  if (walletIdentity(xpub) === undefined) {
    return yield* new UsageError({ message: "--xpub has no extended public key of an account: xpub…, m/44'/60'/n'" })
  }
  return xpub
})

/** Waits until the daemon has read a chain up to this block: money that it has not seen may be a customer's. */
export const untilRead = Effect.fnUntraced(function* (settings: SettingsShape, network: Network, block: number) {
  const without = "--include-open all does without, and may take what a customer is still owed. Nothing was done"
  for (let left = 60; ; left--) {
    const { head = 0 } = yield* ask(settings, readChain, { chain: network.chain, mode: network.mode })
    if (head >= block) return
    if (left === 0) {
      return yield* new UsageError({
        message: `The daemon has read ${networkKey(network)} up to block ${head}, and its chain is at ${block}: tilld doctor says why. ${without}`
      })
    }
    if (left === 60) yield* complain(`waiting until the daemon has read block ${block}`)
    yield* Effect.sleep("500 millis")
  }
})
