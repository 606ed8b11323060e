/** What was signed offline: the plan, and everything that is sent for it. */
import { Schema } from "effect"
import { type Hex, keccak256 } from "viem"
import type { Signature } from "./authorization.ts"
import { digestOf, Plan } from "./Plan.ts"

const Raw = Schema.String.pipe(Schema.pattern(/^0x[0-9a-f]+$/))

export const signedFormat = "tilld sweep signed 1"

/** A signed plan: its authorizations, and each transaction in a variant for each step of the fees. */
export const Signed = Schema.Struct({
  format: Schema.Literal(signedFormat),
  plan: Plan,
  /** In the order of `authorizationsOf`: r, s and v as one. */
  authorizations: Schema.Array(Raw),
  /** In the order of `plannedTransactions`. */
  transactions: Schema.Array(Schema.NonEmptyArray(Raw)),
  /** SHA-256 of the rest. */
  checksum: Schema.String
})
export type Signed = typeof Signed.Type

export const checksumOf = ({
  authorizations,
  plan,
  transactions
}: Pick<Signed, "authorizations" | "plan" | "transactions">) =>
  digestOf({ authorizations, digest: plan.digest, transactions })

/** The parts of a signature of 65 bytes. */
export const signatureOf = (raw: string): Signature => ({
  r: raw.slice(0, 66) as Hex,
  s: `0x${raw.slice(66, 130)}`,
  v: BigInt(`0x${raw.slice(130)}`)
})

/** The hash by which a chain knows a signed transaction. */
export const transactionHashOf = (raw: string): string => keccak256(raw as Hex)
