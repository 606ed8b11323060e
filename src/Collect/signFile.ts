/** `tilld sweep sign`: from a plan's file to a signed one, with the questions between them. */
import { Effect } from "effect"
import { getAddress, isAddress } from "viem"
import { collectRefusal } from "./CollectRefused.ts"
import { goOffline } from "./offline.ts"
import { checkOutput, writeOutput } from "./outputFile.ts"
import { Plan } from "./Plan.ts"
import { feeCeiling, planProblem, type SigningLimits } from "./planChecks.ts"
import { planText, receiversOf } from "./planText.ts"
import { readJsonFile } from "./readJsonFile.ts"
import { readSeed, type SeedSource } from "./seed.ts"
import { signPlan } from "./sign.ts"
import { askAtTerminal } from "./terminal.ts"

const mostAnswers = 3

/** Asks for the end of an address that the operator has noted elsewhere. */
const askForEnd = Effect.fnUntraced(function* (receiver: string) {
  for (let left = mostAnswers; left > 0; left--) {
    const answer = yield* askAtTerminal(`Last six characters of ${receiver}, from your own note of it: `, false)
    if (receiver.toLowerCase().endsWith(answer.trim().toLowerCase()) && answer.trim().length === 6) return
  }
  return yield* collectRefusal(`The answer is not the end of ${receiver}: nothing was signed.`)
})

/** Each receiver has to be confirmed: by the ends that were given, or at the terminal. */
const confirm = (plan: Plan, ends: ReadonlyArray<string>) =>
  Effect.forEach(
    receiversOf(plan),
    (receiver) => {
      if (ends.some((end) => receiver.toLowerCase().endsWith(end.toLowerCase()))) return Effect.void
      return ends.length === 0
        ? askForEnd(receiver)
        : collectRefusal(`The plan sends to ${receiver}, which no --destination-ends fits: nothing was signed.`)
    },
    { concurrency: 1, discard: true }
  )

export interface SignRequest {
  readonly plan: string
  readonly output: string
  readonly force: boolean
  readonly allow: ReadonlyArray<string>
  /** Wei for a unit of gas; otherwise the chain's. */
  readonly feeCeiling: bigint | undefined
  readonly destinationEnds: ReadonlyArray<string>
  readonly seed: SeedSource
}

/** Shows the plan with `show`, has it confirmed, reads the seed, signs, and writes the file. */
export const signFile = Effect.fn("Collect.signFile")(function* (
  request: SignRequest,
  show: (text: string) => Effect.Effect<void>
) {
  yield* goOffline
  yield* checkOutput(request.output, request.force)
  const wrong = request.allow.find((address) => !isAddress(address))
  if (wrong !== undefined)
    return yield* collectRefusal(`${wrong} is not an address: its length or its checksum is wrong.`)
  const plan = yield* readJsonFile(request.plan, Plan, "a plan")
  const limits: SigningLimits = { allow: request.allow, feeCeiling: request.feeCeiling ?? feeCeiling(plan.chain) }
  const problem = planProblem(plan, limits)
  if (problem !== undefined) return yield* collectRefusal(problem)
  yield* show(planText(plan))
  yield* confirm(plan, request.destinationEnds)
  const seed = yield* readSeed(request.seed)
  const signed = yield* signPlan(plan, seed, limits)
  yield* writeOutput(request.output, `${JSON.stringify(signed)}\n`, request.force)
  return {
    file: request.output,
    chain: plan.chain,
    mode: plan.mode,
    destination: getAddress(plan.destination),
    digest: plan.digest,
    words: plan.words,
    authorizations: signed.authorizations.length,
    transactions: signed.transactions.length
  }
})
