import { Args, Command, Options } from "@effect/cli"
import { Array as Arr, Data, Effect, Either, Option } from "effect"
import type { ChainAccess } from "../Chains/providers/chainAccess.ts"
import { collectRefusal } from "../Collect/CollectRefused.ts"
import { type PlannedRefund, uncovered } from "../Collect/candidates.ts"
import { holdingKey } from "../Collect/holdings.ts"
import type { SweepResult } from "../Collect/reconcile.ts"
import type { Signed } from "../Collect/Signed.ts"
import { isSameAddress } from "../Domain/Address.ts"
import type { Network } from "../Domain/Chain.ts"
import { quantityText } from "../lib/quantities.ts"
import { awaitedText, byAddress, heldAt, type ReceivedPayment } from "../Payments/addresses/receivedPayment.ts"
import { mostCollected, recordCollected } from "../Payments/addresses/sweepOperations.ts"
import { noteRefund } from "../Payments/decisions/decisionOperations.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { common, loadSettings, repeatedTexts } from "./options.ts"
import { openRefunds, receivedBut, untilRead, xpubOf } from "./sweepInputs.ts"

/** Loaded only here. */
const sending = Effect.promise(() =>
  Promise.all([
    import("../Chains/providers/chainAccess.ts"),
    import("../Collect/broadcast.ts"),
    import("../Collect/readJsonFile.ts"),
    import("./sweepTexts.ts"),
    import("../Collect/Signed.ts"),
    import("../Chains/rpc/Rpc.ts")
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

/** Which of these refunds are not paid, and why: not open, not of what the plan sends back, or not there. */
const notOwed = Effect.fnUntraced(function* (
  settings: SettingsShape,
  access: ChainAccess,
  wanted: ReadonlyArray<PlannedRefund>
) {
  const ids = wanted.map(({ id }) => id)
  const open = yield* openRefunds(settings, access.chain, ids, true)
  const found = new Map<string, string>()
  const owed: Array<PlannedRefund> = []
  for (const { address, amount, currency, id } of wanted) {
    const one = open.find((one) => one.id === id)
    // It may have become more: the rest stays.
    const fits = isSameAddress(one?.address, address) && one?.currency === currency && one.amount >= amount
    const why = one === undefined ? "is not an open exception" : "is of another amount or address"
    if (fits) owed.push({ ...one, amount })
    else found.set(id, `${id} ${why}: tilld payments exceptions shows those that are open`)
  }
  return new Map([...found, ...(owed.length === 0 ? [] : yield* uncovered(access, owed))])
})

/** Whether an exception is open, as far as that can be told. */
const mayBeOpen = (settings: SettingsShape, network: Network, id: string) =>
  Effect.map(
    Effect.either(openRefunds(settings, network, [id], true)),
    (found) => Either.isLeft(found) || found.right.length > 0
  )

/**
 * Has the daemon note which exceptions were sent back, each by itself, and what was moved. Asked again, nothing is noted twice.
 * Gives what could not be noted, and what to do about it.
 */
const record = Effect.fnUntraced(function* (settings: SettingsShape, { plan }: Signed, result: SweepResult) {
  const { chain, digest, mode } = plan
  const notNoted: Array<string> = []
  const open = new Set<string>()
  for (const { amount, hash, refund: id } of result.transfers) {
    if (id === undefined) continue
    const noted = yield* Effect.either(ask(settings, noteRefund, { id, amount, txHash: hash, uncorroborated: true }))
    if (Either.isRight(noted)) continue
    const isOpen = noted.left._tag !== "AlreadyDecided" || (yield* mayBeOpen(settings, plan, id))
    if (isOpen) open.add(id)
    notNoted.push(
      isOpen
        ? `${id} was sent back and could not be noted (${noted.left.message}): tilld payments refunded ${id} --amount ${amount} --tx ${hash}`
        : `${id} was decided otherwise, and ${hash} has sent it back too: if that was a refund, the customer has it twice`
    )
  }
  // Last, and without what another plan can still have: that asks whether all transactions of its address are noted.
  const decided = result.transfers.filter(({ refund = "" }) => !open.has(refund))
  // The gas after the moves, by which it is told whose it is.
  const noting = [
    ...Arr.chunksOf(decided, mostCollected).map((transfers) => ({ transfers, gas: [] })),
    ...Arr.chunksOf(result.gas, mostCollected).map((gas) => ({ transfers: [], gas }))
  ]
  for (const { gas, transfers: moved } of noting) {
    const transfers = moved.map(({ nonce, refund, ...transfer }) => ({
      ...transfer,
      ...(nonce === undefined ? {} : { nonce }),
      ...(refund === undefined ? {} : { refund })
    }))
    const noted = yield* Effect.either(ask(settings, recordCollected, { chain, mode, digest, transfers, gas }))
    if (Either.isLeft(noted)) {
      notNoted.push(`What was collected could not be noted (${noted.left.message}): run this again`)
    }
  }
  return notNoted
})

const file = Args.text({ name: "signed" }).pipe(
  Args.withDescription("The signed plan, as tilld sweep sign has written it; its journal is kept beside it")
)

const xpub = Options.text("xpub").pipe(
  Options.withDescription(
    "The extended public key that the plan was made with, in a file; otherwise the configuration's"
  ),
  Options.withPseudoName("FILE"),
  Options.optional
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
    const [{ accessTo, readPricedHead }, { broadcast }, { readJsonFile }, { resultText }, { Signed }, { Rpc }] =
      yield* sending
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
          const stale = yield* notOwed(settings, access, refunds)
          const collected = signed.plan.moves.flatMap(({ address, refund }) => (refund === undefined ? [address] : []))
          // What was begun goes on, whatever has come since.
          if (wasBegun || collected.length === 0) return { notOwed: stale, held: new Map() }
          if (!includeOpen.includes("all")) yield* untilRead(settings, network, (yield* readPricedHead(access)).number)
          const received = yield* receivedBut(settings, network, includeOpen)
          return { notOwed: stale, held: yield* heldBack(settings, received, signed.plan, collected) }
        })
      )
    ).pipe(
      Effect.provide(Rpc.layer),
      Effect.onInterrupt(() => complain("Interrupted: run the same command again, which sends nothing twice"))
    )
    if (wasFinished) yield* complain("It was sent before, to its end: this is the account of then")
    yield* print(json ? JSON.stringify(result) : resultText(result))
    const notNoted = yield* record(settings, signed, result)
    const { length: differences } = result.differences
    if (differences > 0 || notNoted.length > 0) return yield* new SweepIncomplete({ differences, notNoted })
  })
).pipe(
  Command.withDescription(
    "Send a signed plan, wait for its confirmations, and account for every unit; run it again after an interruption"
  )
)
