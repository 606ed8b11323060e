import { Args, Command, Options } from "@effect/cli"
import { Array as Arr, Data, Effect, Either, Option } from "effect"
import { holdingKey } from "../Chains/balances/holdings.ts"
import { accessTo, type ChainAccess, readPricedHead } from "../Chains/providers/chainAccess.ts"
import { Rpc } from "../Chains/rpc/Rpc.ts"
import type { PayingMove, payingTransfers } from "../Collect/broadcast.ts"
import { type PlannedRefund, uncovered } from "../Collect/candidates.ts"
import { collectRefusal } from "../Collect/Plan.ts"
import type { SweepResult } from "../Collect/reconcile.ts"
import type { Signed } from "../Collect/Signed.ts"
import { isSameAddress } from "../Domain/Address.ts"
import { quantityText } from "../lib/quantities.ts"
import { mostCollected, recordCollected } from "../Payments/addresses/addressOperations.ts"
import { awaitedText, byAddress, heldAt, type ReceivedPayment } from "../Payments/addresses/receivedPayment.ts"
import { accountRefunds, beginRefunds, mostRefundsAsked } from "../Payments/decisions/sweepRefunds.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { common, fileOption, loadSettings, repeatedTexts } from "./options.ts"
import { owedIn, receivedBut, untilRead, xpubOf } from "./sweepInputs.ts"

/** Loaded only here. */
const sending = Effect.promise(() =>
  Promise.all([
    import("../Collect/broadcast.ts"),
    import("../Collect/readJsonFile.ts"),
    import("./sweepTexts.ts"),
    import("../Collect/Signed.ts")
  ])
)

/** Not everything arrived, or was noted: the account has been printed. */
class SweepIncomplete extends Data.TaggedError("SweepIncomplete")<{
  readonly differences: number
  readonly notNoted: ReadonlyArray<string>
}> {
  override get message() {
    const { differences, notNoted } = this
    const differing = `${quantityText(differences, "difference")}, see above. What was not moved is still where it was, for a new plan`
    return [...(differences === 0 ? [] : [differing]), ...notNoted].join("\n")
  }
}

/** What has to stay at addresses of which is collected. Refuses those that this database does not have: it could not note that. */
const heldBack = (
  settings: SettingsShape,
  received: ReadonlyArray<ReceivedPayment>,
  plan: Signed["plan"],
  addresses: ReadonlyArray<string>
) =>
  Effect.gen(function* () {
    const known = new Map(byAddress(received).map((all) => [all[0].address.toLowerCase(), all]))
    const held = new Map<string, { readonly amount: bigint; readonly why: string }>()
    for (const address of addresses) {
      const payments = known.get(address.toLowerCase())
      if (payments === undefined) {
        return yield* collectRefusal(
          `${settings.database.path} has no money that came to ${address}: name the configuration that the plan was made with (--config). Nothing was sent`
        )
      }
      for (const currency of [plan.coin, ...plan.tokens.map(({ symbol }) => symbol)]) {
        const one = heldAt(payments, currency)
        const why = one && `Payment ${one.payment} ${awaitedText[one.is]}, whose address is collected from`
        if (one && why) held.set(holdingKey(currency, address), { amount: one.amount, why })
      }
    }
    return held
  })

/** Which of these refunds are not paid, and why: not owed, not of what the plan sends back, or not there. */
const notOwed = Effect.fnUntraced(function* (
  settings: SettingsShape,
  access: ChainAccess,
  wanted: ReadonlyArray<PlannedRefund>,
  digest: string
) {
  if (wanted.length === 0) return new Map<string, string>()
  const of = wanted.map((one) => one.of)
  const { owed, problems } = yield* owedIn(settings, access.chain, { of }, { isWaived: true, digest })
  const found = new Map<string, string>()
  const paid: Array<PlannedRefund> = []
  for (const { address, amount, currency, id, of } of wanted) {
    const one = owed.find((one) => one.id === id)
    // An exception may have become more: the rest stays.
    const fits = isSameAddress(one?.address, address) && one?.currency === currency && one.amount >= amount
    if (fits) paid.push({ ...one, amount })
    else
      found.set(id, problems.get(of) ?? `${of} is of another amount or address than the plan's, or was sent back since`)
  }
  return new Map([...found, ...(paid.length === 0 ? [] : yield* uncovered(access, paid))])
})

/** Has the daemon record which refunds are being sent. Gives those that it does not know, and why. */
const begin =
  (settings: SettingsShape, digest: string) =>
  (refunds: ReadonlyArray<PayingMove & { readonly txHash?: string }>, wasSent: boolean) =>
    Effect.map(
      Effect.forEach(
        Arr.chunksOf(refunds, mostRefundsAsked),
        (refunds) => ask(settings, beginRefunds, { digest, wasSent, refunds }),
        { concurrency: 1 }
      ),
      (all) => all.flatMap(({ unknown }) => unknown)
    )

/**
 * Has the daemon account for the refunds, and note what was moved and its gas. Asked again, nothing is noted twice. Gives what
 * could not be noted.
 */
const record = Effect.fnUntraced(function* (
  settings: SettingsShape,
  { plan }: Signed,
  result: SweepResult,
  transfersOf: typeof payingTransfers
) {
  const { chain, digest, mode } = plan
  const hashes = new Map(result.transfers.map(({ hash, place }) => [place, hash]))
  const made = transfersOf(plan, (place) => hashes.has(place)).map((one) => ({
    ...one,
    txHash: hashes.get(one.place) ?? ""
  }))
  const noted = Effect.gen(function* () {
    // A restored database lacks them.
    const unknown = yield* begin(settings, digest)(made, true)
    // What it does not know counts as sent by something else: nothing more is planned from there.
    const isKnown = ({ refund }: { readonly refund?: string | undefined }) =>
      !unknown.some((one) => one.refund === refund)
    const sent = made.filter(isKnown).map(({ refund, txHash }) => ({ refund, txHash }))
    const accounts = [
      ...Arr.chunksOf(sent, mostRefundsAsked).map((sent) => ({ sent, unsent: [] })),
      ...Arr.chunksOf(result.unsent, mostRefundsAsked).map((unsent) => ({ sent: [], unsent }))
    ]
    // The gas after the moves, by which it is told whose it is.
    const noting = [
      ...Arr.chunksOf(result.transfers.filter(isKnown), mostCollected).map((transfers) => ({ transfers, gas: [] })),
      ...Arr.chunksOf(result.gas, mostCollected).map((gas) => ({ transfers: [], gas }))
    ]
    for (const account of accounts) yield* ask(settings, accountRefunds, { digest, ...account })
    for (const { gas, transfers: moved } of noting) {
      const transfers = moved.map(({ nonce, refund, ...transfer }) => ({
        ...transfer,
        ...(nonce === undefined ? {} : { nonce }),
        ...(refund === undefined ? {} : { refund })
      }))
      yield* ask(settings, recordCollected, { chain, mode, digest, transfers, gas })
    }
    return unknown.map(({ refund, why }) => {
      const txHash = made.find((one) => one.refund === refund)?.txHash
      return `${txHash} has sent back what could not be noted (${why}): look what else has, and run this again`
    })
  })
  const failed = yield* Effect.either(noted)
  return Either.isRight(failed)
    ? failed.right
    : [`What was sent could not be noted (${failed.left.message}): run this again`]
})

const file = Args.text({ name: "signed" }).pipe(
  Args.withDescription("The signed plan, as tilld sweep sign has written it; its journal is kept beside it")
)

const xpub = fileOption(
  "xpub",
  "The extended public key that the plan was made with, in a file; otherwise the configuration's"
)

const includeOpen = repeatedTexts(
  "include-open",
  Options.text("include-open").pipe(
    Options.withPseudoName("ADDRESS,…"),
    Options.withDescription("Also send what takes all from these addresses, or from all, whose money waits by now")
  )
).pipe(Options.map((texts) => texts.flatMap((text) => text.split(","))))

/** `tilld sweep broadcast`: sends what was signed, and accounts for it. Needs no key. */
export const broadcastCommand = Command.make(
  "broadcast",
  { ...common, file, includeOpen, xpub },
  Effect.fnUntraced(function* ({ file, includeOpen, json, xpub, ...options }) {
    const settings = yield* loadSettings(options)
    const [{ broadcast, payingTransfers }, { readJsonFile }, { resultText }, { Signed }] = yield* sending
    const signed = yield* readJsonFile(file, Signed, "a signed plan")
    const { chain, mode } = signed.plan
    const network = { chain, mode }
    const request = {
      ...{ signed, journalPath: `${file}.journal`, onProgress: complain },
      xpub: yield* xpubOf(settings, mode, Option.getOrUndefined(xpub))
    }
    const { result, wasFinished } = yield* Effect.flatMap(accessTo(settings, network), (access) =>
      broadcast(
        access,
        request,
        Effect.fnUntraced(function* (refunds, wasBegun) {
          const stale = yield* notOwed(settings, access, refunds, signed.plan.digest)
          const collected = signed.plan.moves.flatMap(({ address, refund }) => (refund === undefined ? [address] : []))
          // What was begun goes on, whatever has come since.
          if (wasBegun || collected.length === 0) return { notOwed: stale, held: new Map() }
          if (!includeOpen.includes("all")) yield* untilRead(settings, network, (yield* readPricedHead(access)).number)
          const received = yield* receivedBut(settings, network, includeOpen)
          return { notOwed: stale, held: yield* heldBack(settings, received, signed.plan, collected) }
        }),
        begin(settings, signed.plan.digest)
      )
    ).pipe(
      Effect.provide(Rpc.layer),
      Effect.onInterrupt(() => complain("Interrupted: run the same command again, which sends nothing twice"))
    )
    if (wasFinished) yield* complain("It was sent before, to its end: this is the account of then")
    yield* print(json ? JSON.stringify(result) : resultText(result))
    const notNoted = yield* record(settings, signed, result, payingTransfers)
    const { length: differences } = result.differences
    if (differences > 0 || notNoted.length > 0) return yield* new SweepIncomplete({ differences, notNoted })
  })
).pipe(
  Command.withDescription(
    "Send a signed plan, wait for its confirmations, and account for every unit; run it again after an interruption"
  )
)
