/**
 * `tilld sweep sign`: from a plan's file to a signed one, with the questions between them, where no chain can be asked. Everything
 * that is signed follows from the plan, whose digest is checked, and each address from the seed: a plan that was changed, or is of
 * another wallet, is refused.
 */
import { Array as Arr, Clock, Effect } from "effect"
import { isAddress, isAddressEqual, keccak256, serializeTransaction } from "viem"
import { checkOutput, writeOutput } from "../Backup/files.ts"
import { quantityText } from "../lib/quantities.ts"
import { goOffline } from "./offline.ts"
import { collectRefusal, Plan } from "./Plan.ts"
import { feeCeiling, planProblem, type SigningLimits, totalFeeCeiling } from "./planChecks.ts"
import { type PlannedReceiver, planText, type ReceiverRole, receiversOf } from "./planText.ts"
import { readJsonFile } from "./readJsonFile.ts"
import { checksumOf, type Signed, signatureOf, signedFormat } from "./Signed.ts"
import { type AccountKey, askAtTerminal, readSeed, type SeedSource, withAccountKey } from "./seed.ts"
import { authorizationsOf, plannedTransactions, typedData, type Unsent } from "./transactions.ts"

/** Refuses a plan of another seed. */
const checkOwner = ({ account, moves, sponsor }: Plan, { signer }: AccountKey) =>
  Effect.gen(function* () {
    const expected = [
      { address: sponsor.address, index: "sponsor" as const, path: "1/0" },
      ...moves.map(({ address, index }) => ({ address, index, path: `0/${index}` }))
    ]
    for (const { address, index, path } of expected) {
      const derived = signer(index).address
      if (isAddressEqual(derived, address as `0x${string}`)) continue
      return yield* collectRefusal(
        `The seed is not the plan's: m/44'/60'/${account}'/${path} is ${derived}, and the plan has ${address} there. Nothing was signed; a passphrase makes another seed, too.`
      )
    }
  })

/** Signs a plan that is in order. `seed` is overwritten. */
export const signPlan = Effect.fn("Collect.signPlan")(function* (plan: Plan, seed: Uint8Array, limits: SigningLimits) {
  const problem = planProblem(plan, limits)
  return yield* withAccountKey(seed, plan.account, (key) =>
    problem === undefined ? signWith(plan, key) : collectRefusal(problem)
  )
})

/** Batches that are signed without one of their authorizations: each takes some milliseconds. */
const mostSmaller = 500

const signWith = Effect.fnUntraced(function* (plan: Plan, key: AccountKey) {
  yield* checkOwner(plan, key)
  const authorizations = yield* Effect.forEach(
    authorizationsOf(plan),
    ({ message, move, token }) =>
      Effect.promise(() => key.signer(move.index).signTypedData(typedData(plan, token, message))),
    { concurrency: 1 }
  )
  const sign = ({ index, variants }: Unsent) => {
    const signer = key.signer(index ?? "sponsor")
    return Effect.forEach(variants, (one) => Effect.promise(() => signer.signTransaction(one)), { concurrency: 1 })
  }
  const unsent = plannedTransactions(plan, authorizations.map(signatureOf))
  const transactions = yield* Effect.forEach(unsent, sign, { concurrency: 1 })
  const sponsor = key.signer("sponsor")
  const members = unsent.flatMap(({ moves, without }) => (without ? moves.map((place) => ({ place, without })) : []))
  const smaller = yield* Effect.forEach(
    members.slice(0, mostSmaller),
    ({ place, without }) => {
      const hash = keccak256(serializeTransaction(Arr.lastNonEmpty(without(place).variants)))
      return Effect.promise(() => sponsor.sign({ hash }))
    },
    { concurrency: 1 }
  )
  const parts = { plan, authorizations, transactions, smaller }
  const signed: Signed = { format: signedFormat, ...parts, checksum: checksumOf(parts) }
  return signed
})

const mostAnswers = 3

/** An address, or its end of six characters at least. */
const addressEnd = /^(0x[0-9a-f]{40}|[0-9a-f]{6,40})$/i

const fits = (end: string, address: string) =>
  addressEnd.test(end) && address.toLowerCase().endsWith(end.toLowerCase().replace(/^0x/, ""))

const options: Readonly<Record<ReceiverRole, string>> = {
  collected: "--destination or --destination-ends",
  refund: "--refund-to or --refund-ends"
}

/** What is never said here: the address, which has to come from the operator's own note. */
const nameOf = ({ moves: [{ exception, refund }, ...more], role }: PlannedReceiver): string =>
  role === "collected"
    ? "where collected money goes"
    : `whom ${exception ?? refund}${more.length === 0 ? " is" : ` and ${quantityText(more.length, "more refund")} are`} sent back to`

const askFor = Effect.fnUntraced(function* (receiver: PlannedReceiver) {
  const question = `The address ${nameOf(receiver)}, from your own note (whole, or its last six characters at least): `
  let note = ""
  for (let left = mostAnswers - 1; left >= 0; left--) {
    const answer = (yield* askAtTerminal(note + question, false)).trim()
    if (fits(answer, receiver.address)) return
    const what = addressEnd.test(answer)
      ? "not the plan's"
      : "neither an address nor six or more of its last characters"
    note = `That is ${what}, ${left} of ${mostAnswers} answers are left. `
  }
  return yield* collectRefusal(`The answer is not the address ${nameOf(receiver)} by the plan: nothing was signed.`)
})

/** Each receiver has to be confirmed, before it is shown: by what was given for its role, or at the terminal. */
const confirm = (plan: Plan, confirmed: SignRequest["confirmed"]) =>
  Effect.forEach(
    receiversOf(plan),
    (receiver) => {
      const ends = confirmed[receiver.role]
      if (ends.length === 0) return askFor(receiver)
      return ends.some((end) => fits(end, receiver.address))
        ? Effect.void
        : collectRefusal(`No ${options[receiver.role]} is the address ${nameOf(receiver)}: nothing was signed.`)
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
  /** Wei for all fees together; otherwise the chain's. */
  readonly maxTotalFee: bigint | undefined
  /** Takes a plan of any time. */
  readonly anyAge: boolean
  /** Addresses, or their ends, by what goes there. */
  readonly confirmed: Readonly<Record<ReceiverRole, ReadonlyArray<string>>>
  readonly seed: SeedSource
}

/** Has the plan confirmed, shows it with `show`, reads the seed, signs, and writes the file. */
export const signFile = Effect.fn("Collect.signFile")(function* (
  request: SignRequest,
  show: (text: string) => Effect.Effect<void>
) {
  yield* goOffline
  yield* checkOutput(request.output, request.force)
  const given = [...request.allow, ...Object.values(request.confirmed).flat()]
  const wrong = given.find((text) => (/^0x/i.test(text) || text.length === 40) && !isAddress(`0x${text.slice(-40)}`))
  if (wrong !== undefined) return yield* collectRefusal(`${wrong} is not an address: its length or checksum is wrong.`)
  const plan = yield* readJsonFile(request.plan, Plan, "a plan")
  const limits: SigningLimits = {
    ...{ allow: request.allow, refundTo: request.confirmed.refund },
    feeCeiling: request.feeCeiling ?? feeCeiling(plan.chain),
    totalFeeCeiling: request.maxTotalFee ?? totalFeeCeiling(plan),
    now: request.anyAge ? undefined : Math.floor((yield* Clock.currentTimeMillis) / 1000)
  }
  const problem = planProblem(plan, limits)
  if (problem !== undefined) return yield* collectRefusal(problem)
  yield* confirm(plan, request.confirmed)
  yield* show(planText(plan))
  const seed = yield* readSeed(request.seed)
  const signed = yield* signPlan(plan, seed, limits)
  yield* writeOutput(request.output, `${JSON.stringify(signed)}\n`, request.force)
  return signed
})
