/** What both a plan and its broadcast ask for: exceptions that go back, the wallet's extended public key, and that nothing is unseen. */
import { Effect, Redacted } from "effect"
import type { PlannedRefund } from "../Collect/candidates.ts"
import { isSameAddress } from "../Domain/Address.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import type { ReceivedPayment } from "../Payments/addresses/receivedPayment.ts"
import { listReceived, readChain } from "../Payments/addresses/sweepOperations.ts"
import { listExceptions } from "../Payments/decisions/decisionOperations.ts"
import { walletIdentity } from "../Settings/hdWallet.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask, askRunning, type ControlTarget } from "./askDaemon.ts"
import { complain } from "./Output.ts"
import { readInput, UsageError } from "./options.ts"

/** Those of the named exceptions that are open, all of one network; `isWaived`: also what no second provider has. */
export const openRefunds = Effect.fnUntraced(function* (
  settings: SettingsShape,
  network: Network,
  ids: ReadonlyArray<string>,
  isWaived: boolean
) {
  const wanted = new Set(ids)
  const found: Array<PlannedRefund> = []
  let after: string | undefined
  while (found.length < wanted.size) {
    const page: ReadonlyArray<(typeof listExceptions.output.Type)[number]> = yield* ask(settings, listExceptions, {
      limit: 1000,
      ...(after === undefined ? {} : { after })
    })
    for (const one of page) {
      const { chain, derivationIndex: index, id, kind, mode, undecidable } = one
      // What a reorg took away is not there to be sent back.
      if (!wanted.has(id) || kind === "reorged") continue
      if (chain !== network.chain || mode !== network.mode) {
        return yield* new UsageError({ message: `${id} is on ${chain}.${mode}, not on ${networkKey(network)}` })
      }
      if (index === undefined) {
        return yield* new UsageError({ message: `The path of ${id}'s address is not known: send it back by hand` })
      }
      const why = isWaived && undecidable?.isWaivable ? undefined : undecidable?.message
      found.push({ ...one, index, amount: BigInt(one.amount), kept: BigInt(one.kept), undecidable: why })
    }
    after = page.at(-1)?.id
    if (page.length < 1000) break
  }
  return found
})

/** The open exceptions that are named, each of which has to be one. */
export const refundsOf = Effect.fnUntraced(function* (
  settings: SettingsShape,
  network: Network,
  ids: ReadonlyArray<string>,
  isWaived: boolean
) {
  const found = yield* openRefunds(settings, network, ids, isWaived)
  const missing = ids.find((id) => !found.some((one) => one.id === id))
  return missing === undefined
    ? found
    : yield* new UsageError({ message: `${missing} is not an open exception: tilld payments exceptions shows them` })
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
    const found = yield* askRunning(settings, readChain, { chain: network.chain, mode: network.mode })
    if (found === undefined) {
      return yield* new UsageError({ message: `No daemon runs here to see what has come last: start it. ${without}` })
    }
    if ((found.head ?? 0) >= block) return
    if (left === 0) {
      return yield* new UsageError({
        message: `The daemon has read ${networkKey(network)} up to block ${found.head ?? 0}, and its chain is at ${block}: tilld doctor says why. ${without}`
      })
    }
    if (left === 60) yield* complain(`waiting until the daemon has read block ${block}`)
    yield* Effect.sleep("500 millis")
  }
})
