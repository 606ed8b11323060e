/** What was signed offline: the plan, and everything that is sent for it. */
import { Schema } from "effect"
import { type Hex, parseSignature } from "viem"
import { must } from "../Domain/must.ts"
import type { Signature } from "./authorization.ts"
import { digestOf, Plan } from "./Plan.ts"

const Raw = Schema.String.pipe(Schema.pattern(/^0x[0-9a-f]+$/))

export const signedFormat = "tilld sweep signed 1"

/** A signed plan: its authorizations, and each transaction in a variant for each step of the fees. */
export const Signed = Schema.Struct({
  format: must(`be "${signedFormat}", which tilld sweep sign writes`, Schema.Literal(signedFormat)),
  plan: Plan,
  /** In the order of `authorizationsOf`: r, s and v as one. */
  authorizations: Schema.Array(Raw),
  /** In the order of `plannedTransactions`. */
  transactions: Schema.Array(Schema.NonEmptyArray(Raw)),
  /** SHA-256 of the rest. */
  checksum: Schema.String
})
export type Signed = typeof Signed.Type

export const checksumOf = ({ authorizations, plan, transactions }: Omit<Signed, "checksum" | "format">) =>
  digestOf({ authorizations, digest: plan.digest, transactions })

/** The parts of a signature of 65 bytes. */
export const signatureOf = (raw: string): Signature => parseSignature(raw as Hex)
