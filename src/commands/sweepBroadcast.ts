import { Args, Command } from "@effect/cli"
import { Array as Arr, Data, Effect } from "effect"
import type { SweepResult } from "../Collect/reconcile.ts"
import type { Signed } from "../Collect/Signed.ts"
import { mostCollected, recordCollected } from "../Payments/addresses/collectedOperation.ts"
import { noteRefund } from "../Payments/decisions/decisionOperations.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask } from "./askDaemon.ts"
import { common, loadSettings } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"

/** Loaded only here. */
const sending = Effect.promise(() =>
  Promise.all([
    import("../Collect/access.ts"),
    import("../Collect/broadcast.ts"),
    import("../Collect/readJsonFile.ts"),
    import("../Collect/resultText.ts"),
    import("../Collect/Signed.ts"),
    import("../Chains/rpc/Rpc.ts")
  ])
)

/** Not everything arrived: the account has been printed. */
class SweepIncomplete extends Data.TaggedError("SweepIncomplete")<{ readonly differences: number }> {
  override get message() {
    return `${this.differences} balances are not as they should be, see above. What was not moved is still where it was: make a new plan for it`
  }
}

/** Has the daemon note what was moved, and which exceptions were sent back. Asked again, nothing is noted twice. */
const record = Effect.fnUntraced(function* (settings: SettingsShape, { plan }: Signed, result: SweepResult) {
  const { chain, digest, mode } = plan
  for (const transfers of Arr.chunksOf(result.transfers, mostCollected)) {
    yield* ask(settings, recordCollected, {
      ...{ chain, mode, digest },
      transfers: transfers.map(({ refund: _, ...transfer }) => transfer)
    })
  }
  for (const { amount, hash, refund } of result.transfers) {
    if (refund !== undefined) yield* ask(settings, noteRefund, { id: refund, amount, txHash: hash })
  }
})

const file = Args.text({ name: "signed" }).pipe(
  Args.withDescription("The signed plan, as tilld sweep sign has written it; its journal is kept beside it")
)

/** `tilld sweep broadcast`: sends what was signed, and accounts for it. Needs no key. */
export const broadcastCommand = Command.make(
  "broadcast",
  { ...common, file },
  Effect.fnUntraced(function* ({ file, json, ...options }) {
    const settings = yield* loadSettings(options)
    const [{ accessTo }, { broadcast }, { readJsonFile }, { resultText }, { Signed }, { Rpc }] = yield* sending
    const signed = yield* readJsonFile(file, Signed, "a signed plan")
    const { chain, mode } = signed.plan
    const request = { signed, journalPath: `${file}.journal`, onProgress: complain }
    const { result, wasFinished } = yield* Effect.flatMap(accessTo(settings, { chain, mode }), (access) =>
      broadcast(access, request, (result) => record(settings, signed, result))
    ).pipe(Effect.provide(Rpc.layer))
    if (wasFinished) yield* complain("It was sent before, to its end: this is the account of then")
    yield* print(json ? JSON.stringify(result) : resultText(result))
    const { length: differences } = result.differences
    if (differences > 0) return yield* new SweepIncomplete({ differences })
  })
).pipe(
  Command.withDescription(
    "Send a signed plan, wait for its confirmations, and account for every unit; run it again after an interruption"
  )
)
