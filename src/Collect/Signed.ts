/** What was signed offline: the plan, and everything that is sent for it; and whether it is what its plan says, before a chain is asked. */
import { Array as Arr, Effect, Schema } from "effect"
import {
  type Hex,
  isAddressEqual,
  keccak256,
  parseSignature,
  parseTransaction,
  recoverTransactionAddress,
  recoverTypedDataAddress,
  serializeTransaction
} from "viem"
import { must } from "../lib/annotations.ts"
import { collectRefusal, digestOf, isWhole, Plan } from "./Plan.ts"
import { authorizationsOf, plannedTransactions, type Signature, typedData, type Unsent } from "./transactions.ts"

const Raw = Schema.String.pipe(Schema.pattern(/^0x[0-9a-f]+$/))

export const signedFormat = "tilld sweep signed 2"

/** A signed plan: its authorizations, and each transaction in a variant for each step of the fees. */
export const Signed = Schema.Struct({
  format: must(`be "${signedFormat}", which tilld sweep sign writes`, Schema.Literal(signedFormat)),
  plan: Plan,
  /** In the order of `authorizationsOf`: r, s and v as one. */
  authorizations: Schema.Array(Raw),
  /** In the order of `plannedTransactions`. */
  transactions: Schema.Array(Schema.NonEmptyArray(Raw)),
  /** In the order of the authorizations, the signature of each one's batch without it; of the first ones only. */
  smaller: Schema.Array(Raw),
  /** SHA-256 of the rest. */
  checksum: Schema.String
})
export type Signed = typeof Signed.Type

export const checksumOf = ({ authorizations, plan, smaller, transactions }: Omit<Signed, "checksum" | "format">) =>
  digestOf({ authorizations, digest: plan.digest, smaller, transactions })

/** The parts of a signature of 65 bytes. */
export const signatureOf = (raw: string): Signature => parseSignature(raw as Hex)

/** A transaction of the plan, with what was signed for each step. */
export interface Ready extends Unsent {
  readonly raws: ReadonlyArray<string>
  readonly hashes: ReadonlyArray<string>
}

const changed = (what: string) =>
  collectRefusal(`${what} in the signed file is not what its plan says: it was changed. Sign the plan again.`)

/** At most half the curve's order: with a higher s no node takes a transaction (EIP-2), nor do tokens a signature. */
const isLow = (s: Hex): boolean => BigInt(s) <= 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** Whether the bytes are this transaction, signed by its sender. */
const isSignedBy = async (raw: string, variant: Unsent["variants"][number], from: string): Promise<boolean> => {
  try {
    const { r, s, yParity } = parseTransaction(raw as `0x02${string}`)
    if (r === undefined || s === undefined || yParity === undefined) return false
    if (!isLow(s) || serializeTransaction(variant, { r, s, yParity }) !== raw) return false
    const signer = await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` })
    return isAddressEqual(signer, from as Hex)
  } catch {
    return false
  }
}

/** Its transactions, each of which is what the plan says, and signed by whom it names. */
export const verifySigned = Effect.fn("Collect.verifySigned")(function* (signed: Signed) {
  const { authorizations, plan, transactions } = signed
  if (!isWhole(plan)) return yield* changed("The digest")
  if (checksumOf(signed) !== signed.checksum) return yield* changed("Something")
  const authorized = authorizationsOf(plan)
  if (authorized.length !== authorizations.length) return yield* changed("The number of authorizations")
  for (const [i, { message, token }] of authorized.entries()) {
    const signature = (authorizations[i] ?? "0x") as Hex
    const signer = yield* Effect.promise(() =>
      recoverTypedDataAddress({ ...typedData(plan, token, message), signature }).catch(() => undefined)
    )
    if (signer === undefined || !isAddressEqual(signer, message.from) || !isLow(signatureOf(signature).s)) {
      return yield* changed(`The authorization of ${message.from}`)
    }
  }
  const expected = plannedTransactions(plan, authorizations.map(signatureOf))
  if (expected.length !== transactions.length) return yield* changed("The number of transactions")
  const ready: Array<Ready> = []
  for (const [place, unsent] of expected.entries()) {
    const raws = transactions[place] ?? []
    const checks = unsent.variants.map((variant, step) => isSignedBy(raws[step] ?? "0x", variant, unsent.from))
    const isValid = !(yield* Effect.promise(() => Promise.all(checks))).includes(false)
    if (!isValid || raws.length !== checks.length) {
      return yield* changed(`Transaction ${place + 1}, of ${unsent.from},`)
    }
    ready.push({ ...unsent, raws, hashes: raws.map((raw) => keccak256(raw as Hex)) })
  }
  return ready
})

/** What is sent where moves are left out: of a batch the smaller one that was signed beside it, at the highest step. */
export const withoutMoves = Effect.fn("Collect.withoutMoves")(function* (
  { plan, smaller }: Signed,
  ready: ReadonlyArray<Ready>,
  left: ReadonlyArray<number>
) {
  const replaced = Effect.fnUntraced(function* (one: Ready) {
    const [place, ...more] = one.moves.filter((each) => left.includes(each))
    if (one.without === undefined || place === undefined) return one
    const signature = smaller[authorizationsOf(plan).findIndex((each) => each.place === place)]
    if (more.length > 0 || signature === undefined) {
      const why = "One transaction has transfers that are left out, and was not signed without just these"
      return yield* collectRefusal(`${why}: make a new plan. Nothing was sent`)
    }
    const batch = one.without(place)
    const variant = Arr.lastNonEmpty(batch.variants)
    const raw = serializeTransaction(variant, signatureOf(signature))
    if (!(yield* Effect.promise(() => isSignedBy(raw, variant, one.from)))) return yield* changed("A smaller batch")
    const each = <A>(value: A) => Arr.map(plan.fees, () => value)
    return { ...batch, variants: each(variant), raws: each(raw), hashes: each(keccak256(raw)) }
  })
  return yield* Effect.forEach(ready, replaced, { concurrency: 1 })
})
