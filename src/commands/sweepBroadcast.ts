import { Args, Command, Options } from "@effect/cli"
import { Array as Arr, Data, Effect, Either, Option } from "effect"
import type { PlannedRefund } from "../Collect/candidates.ts"
import type { SweepResult } from "../Collect/reconcile.ts"
import type { Signed } from "../Collect/Signed.ts"
import { isSameAddress } from "../Domain/Address.ts"
import type { Network } from "../Domain/Chain.ts"
import { mostCollected, recordCollected } from "../Payments/addresses/collectedOperation.ts"
import { awaitedAt, awaitedText, byAddress } from "../Payments/addresses/receivedPayment.ts"
import { noteRefund } from "../Payments/decisions/decisionOperations.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask } from "./askDaemon.ts"
import { common, loadSettings, UsageError } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"
import { allReceived } from "./received.ts"
import { refundsOf, untilRead, xpubOf } from "./sweepInputs.ts"

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
    const differing = `${differences} balances are not as they should be, see above. What was not moved is still where it was: make a new plan for it`
    return [...(differences === 0 ? [] : [differing]), ...notNoted].join("\n")
  }
}

/**
 * Refuses to collect from addresses that this database does not have, since it could not note that, and from those of which
 * something is open that was not when the plan was made. `mayBeOpen` takes these.
 */
const checkCollected = Effect.fnUntraced(function* (
  settings: SettingsShape,
  { chain, mode, moves }: Signed["plan"],
  mayBeOpen: boolean
) {
  const collected = moves.filter(({ refund }) => refund === undefined)
  if (collected.length === 0) return
  const received = byAddress(yield* allReceived(settings, { chain, mode }, undefined))
  const known = new Map(received.map((all) => [all[0].address.toLowerCase(), all]))
  for (const { address } of collected) {
    const payments = known.get(address.toLowerCase())
    if (payments === undefined) {
      return yield* new UsageError({
        message: `${settings.database.path} has no money that came to ${address}: name the configuration that the plan was made with (--config). Nothing is sent`
      })
    }
    const awaited = mayBeOpen ? undefined : awaitedAt(payments)
    if (awaited !== undefined) {
      return yield* new UsageError({
        message: `Payment ${awaited.payment} ${awaitedText[awaited.is]}, whose address is collected from: make a new plan without --include-open, or send this one with it. Nothing is sent`
      })
    }
  }
})

/** Why a file cannot be sent: what it sends back is not, or no longer, owed. */
const checkRefunds = Effect.fnUntraced(function* (
  settings: SettingsShape,
  network: Network,
  wanted: ReadonlyArray<PlannedRefund>
) {
  const ids = wanted.map(({ id }) => id)
  const open = yield* Effect.mapError(refundsOf(settings, network, ids), (error) =>
    error instanceof UsageError
      ? new UsageError({ message: `${error.message}. Nothing is sent: make a new plan` })
      : error
  )
  for (const { address, amount, currency, id } of wanted) {
    const found = open.find((one) => one.id === id)
    if (isSameAddress(found?.address, address) && found?.amount === amount && found.currency === currency) continue
    return yield* new UsageError({
      message: `${id} is no longer what the plan sends back, ${amount} base units of ${currency} from ${address}: nothing was sent`
    })
  }
})

/**
 * Has the daemon note what was moved, and which exceptions were sent back, each by itself. Asked again, nothing is noted twice.
 * Gives what could not be noted, and what to do about it.
 */
const record = Effect.fnUntraced(function* (settings: SettingsShape, { plan }: Signed, result: SweepResult) {
  const { chain, digest, mode } = plan
  const notNoted: Array<string> = []
  for (const moved of Arr.chunksOf(result.transfers, mostCollected)) {
    const transfers = moved.map(({ refund: _, ...transfer }) => transfer)
    const noted = yield* Effect.either(ask(settings, recordCollected, { chain, mode, digest, transfers }))
    if (Either.isLeft(noted)) {
      notNoted.push(`What was collected could not be noted (${noted.left.message}): run this again`)
    }
  }
  for (const { amount, hash, refund: id } of result.transfers) {
    if (id === undefined) continue
    const noted = yield* Effect.either(ask(settings, noteRefund, { id, amount, txHash: hash }))
    if (Either.isLeft(noted)) {
      notNoted.push(
        `${id} was sent back and could not be noted (${noted.left.message}): tilld payments refunded ${id} --amount ${amount} --tx ${hash}`
      )
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
          const mayBeOpen = includeOpen || wasBegun
          if (!mayBeOpen && signed.plan.moves.some(({ refund }) => refund === undefined)) {
            yield* untilRead(settings, network, (yield* readPricedHead(access)).number)
          }
          yield* checkCollected(settings, signed.plan, mayBeOpen)
          yield* checkRefunds(settings, network, refunds)
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
