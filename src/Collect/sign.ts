/**
 * Signs a plan where no chain can be asked. Everything that is signed follows from the plan, whose digest is checked, and each
 * address from the seed: a plan that was changed, or is of another wallet, is refused.
 */
import { Effect } from "effect"
import { isAddressEqual } from "viem"
import { typedData } from "./authorization.ts"
import { collectRefusal } from "./CollectRefused.ts"
import { type AccountKey, withAccountKey } from "./keys.ts"
import type { Plan } from "./Plan.ts"
import { planProblem, type SigningLimits } from "./planChecks.ts"
import { checksumOf, type Signed, signatureOf, signedFormat } from "./Signed.ts"
import { authorizationsOf, plannedTransactions, type Unsent } from "./transactions.ts"

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
  const parts = { plan, authorizations, transactions }
  const signed: Signed = { format: signedFormat, ...parts, checksum: checksumOf(parts) }
  return signed
})
