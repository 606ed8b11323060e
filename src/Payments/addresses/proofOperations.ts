/** What the daemon's machine does to be shown that the operator holds a wallet's seed: it asks, and checks what was signed. */
import { Clock, Effect, Schema } from "effect"
import { mustExist } from "../../Auth/accountOperations.ts"
import { ProofRefused, UnknownAccount } from "../../Domain/Account.ts"
import { iso } from "../../lib/moment.ts"
import { cut } from "../../lib/text.ts"
import { AccountField, ModeField } from "../../Operations/inputFields.ts"
import { withFlag } from "../../Operations/inputText.ts"
import { lazily, operation } from "../../Operations/operation.ts"

const wallets = lazily(() => import("./provenWallets.ts"))
const proofs = lazily(() => import("./walletProof.ts"))

/** Days after its challenge on which a proof is taken: the way to the seed may be long. */
const validDays = 31
const dayLength = 86_400_000

export const challengeWallet = operation({
  name: "wallet challenge",
  summary: "Print what tilld wallet prove signs, where the seed is, to show that you still hold it",
  needs: "secrets",
  input: { mode: ModeField, account: AccountField },
  output: Schema.Struct({ challenge: Schema.String }),
  refusals: [UnknownAccount, ProofRefused],
  run: Effect.fnUntraced(function* ({ account, mode }) {
    yield* mustExist(account)
    const { walletOfOwner } = yield* wallets
    const { challengeOf } = yield* proofs
    const wallet = yield* walletOfOwner({ account, mode })
    if (wallet === undefined) {
      return yield* new ProofRefused({
        message: `There is no ${mode} wallet: neither wallets.${mode} nor one of its own`
      })
    }
    const challenge = challengeOf(wallet, iso(yield* Clock.currentTimeMillis).slice(0, 10))
    return challenge === undefined
      ? yield* new ProofRefused({
          message: "The wallet's key is not the one of an account m/44'/60'/n': tilld cannot sign for its addresses"
        })
      : { challenge }
  })
})

export const checkProof = operation({
  name: "wallet check",
  summary: "Check what tilld wallet prove has signed, and note that the seed was shown to be held",
  needs: "secrets",
  input: {
    proof: withFlag(Schema.String, { about: "What tilld wallet prove has printed", value: "PROOF", isArgument: true })
  },
  output: Schema.Struct({ wallet: Schema.String, day: Schema.String, address: Schema.String }),
  refusals: [ProofRefused],
  audit: ({ proof }) => ({ proof: cut(proof, 200) }),
  run: Effect.fnUntraced(function* ({ proof }) {
    const { isSignedBy, parseProof, recordProof } = yield* proofs
    const { walletWith } = yield* wallets
    const parsed = parseProof(proof)
    if (parsed === undefined) {
      return yield* new ProofRefused({
        message: "This is not a proof: give the whole word that tilld wallet prove printed"
      })
    }
    const age = (yield* Clock.currentTimeMillis) - Date.parse(parsed.day)
    if (!(age >= 0 && age < validDays * dayLength)) {
      return yield* new ProofRefused({
        message: `The proof is of a challenge of ${parsed.day}, and counts for ${validDays} days: sign a new tilld wallet challenge`
      })
    }
    const wallet = yield* walletWith(parsed.fingerprint)
    if (wallet === undefined) {
      return yield* new ProofRefused({
        message: `Neither the configuration nor an account has the wallet ${parsed.fingerprint}`
      })
    }
    if (!(yield* isSignedBy(parsed, wallet))) {
      return yield* new ProofRefused({
        message: "The proof is not signed by the wallet's first address: nothing was noted"
      })
    }
    const { Writer } = yield* lazily(() => import("../../Sql.ts"))
    yield* (yield* Writer).write(recordProof(parsed))
    return { wallet: parsed.fingerprint, day: parsed.day, address: wallet.address(0) }
  })
})
