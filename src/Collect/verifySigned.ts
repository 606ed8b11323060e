/** Whether a signed file is what its plan says, by itself: before a chain is asked. */
import { Effect } from "effect"
import {
  type Hex,
  isAddressEqual,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
  recoverTypedDataAddress,
  serializeTransaction
} from "viem"
import { typedData } from "./authorization.ts"
import { collectRefusal } from "./CollectRefused.ts"
import { isWhole } from "./Plan.ts"
import { checksumOf, type Signed, signatureOf } from "./Signed.ts"
import { authorizationsOf, plannedTransactions, type Unsent } from "./transactions.ts"

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
