import { Args, Command, Options } from "@effect/cli"
import { Array as Arr, Data, Effect, Either, Option } from "effect"
import { collectRefusal } from "../Collect/CollectRefused.ts"
import type { PlannedRefund } from "../Collect/candidates.ts"
import type { SweepResult } from "../Collect/reconcile.ts"
import type { Signed } from "../Collect/Signed.ts"
import { isSameAddress } from "../Domain/Address.ts"
import type { Network } from "../Domain/Chain.ts"
import { quantityText } from "../Domain/quantityText.ts"
import { mostCollected, recordCollected } from "../Payments/addresses/collectedOperation.ts"
import { awaitedAt, awaitedText, byAddress } from "../Payments/addresses/receivedPayment.ts"
import { noteRefund } from "../Payments/decisions/decisionOperations.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask } from "./askDaemon.ts"
import { common, loadSettings } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"
import { allReceived } from "./received.ts"
import { openRefunds, untilRead, xpubOf } from "./sweepInputs.ts"

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

/**
 * Refuses to collect from addresses that this database does not have, since it could not note that, and from those of which
 * something is open. `takesOpen` takes these.
 */
const checkCollected = Effect.fnUntraced(function* (
  settings: SettingsShape,
  { chain, mode, moves }: Signed["plan"],
  takesOpen: boolean
) {
  const collected = moves.filter(({ refund }) => refund === undefined)
  const received = byAddress(yield* allReceived(settings, { chain, mode }, undefined))
  const known = new Map(received.map((all) => [all[0].address.toLowerCase(), all]))
  for (const { address } of collected) {
    const payments = known.get(address.toLowerCase())
    if (payments === undefined) {
      return yield* collectRefusal(
        `${settings.database.path} has no money that came to ${address}: name the configuration that the plan was made with (--config). Nothing was sent`
      )
    }
    const awaited = takesOpen ? undefined : awaitedAt(payments)
    if (awaited !== undefined) {
      return yield* collectRefusal(
        `Payment ${awaited.payment} ${awaitedText[awaited.is]}, whose address is collected from: make a new plan without --include-open, or send this one with it. Nothing was sent`
      )
    }
  }
})

/** Which of these refunds are not owed: not open, or not what the plan sends back. */
const notOwed = Effect.fnUntraced(function* (
  settings: SettingsShape,
  network: Network,
  wanted: ReadonlyArray<PlannedRefund>
) {
  const ids = wanted.map(({ id }) => id)
  const open = yield* openRefunds(settings, network, ids)
  return wanted.flatMap(({ address, amount, currency, id }) => {
    const found = open.find((one) => one.id === id)
    if (isSameAddress(found?.address, address) && found?.amount === amount && found.currency === currency) return []
    const why = found === undefined ? "is not an open exception" : "is of another amount or address"
    return [{ id, why: `${id} ${why}: tilld payments exceptions shows those that are open` }]
  })
})

/** Whether an exception is open, as far as that can be told. */
const mayBeOpen = (settings: SettingsShape, network: Network, id: string) =>
  Effect.map(
    Effect.either(openRefunds(settings, network, [id])),
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
    const noted = yield* Effect.either(ask(settings, noteRefund, { id, amount, txHash: hash }))
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
  for (const moved of Arr.chunksOf(decided, mostCollected)) {
    const transfers = moved.map(({ nonce, refund: _, ...transfer }) => ({
      ...transfer,
      ...(nonce === undefined ? {} : { nonce })
    }))
    const noted = yield* Effect.either(ask(settings, recordCollected, { chain, mode, digest, transfers }))
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

const includeOpen = Options.boolean("include-open").pipe(
  Options.withDescription(
    "Also send what collects from an address whose payment is open or has an open exception by now"
  )
)

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
          // What was begun goes on, whatever has come since.
          if (!wasBegun && signed.plan.moves.some(({ refund }) => refund === undefined)) {
            if (!includeOpen) yield* untilRead(settings, network, (yield* readPricedHead(access)).number)
            yield* checkCollected(settings, signed.plan, includeOpen)
          }
          const stale = yield* notOwed(settings, network, refunds)
          const [first] = stale
          if (first !== undefined && !wasBegun) {
            return yield* collectRefusal(`${first.why}. Nothing was sent: make a new plan`)
          }
          for (const { why } of stale) yield* complain(`${why}. What sends it back is not sent again`)
          return stale.map(({ id }) => id)
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
