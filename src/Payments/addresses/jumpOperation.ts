import { Effect, Schema } from "effect"
import { must } from "../../lib/annotations.ts"
import { otherwise } from "../../Operations/inputFields.ts"
import { withFlag } from "../../Operations/inputText.ts"
import { lazily, operation } from "../../Operations/operation.ts"
import { blindJump } from "./IndexMark.ts"

/** Maximum address indexes that one jump skips: each skipped address is derived, stored and watched. */
const farthestJump = 50_000

/** Skips addresses: moves the next index of all wallets ahead. */
export const jumpAddresses = operation({
  name: "addresses jump",
  summary:
    "Skip addresses of every wallet, and watch them: after a snapshot of the whole machine was restored, which tilld cannot tell",
  needs: "store",
  input: {
    by: withFlag(
      otherwise(must(`be 1 to ${farthestJump}`, Schema.Int.pipe(Schema.between(1, farthestJump))), () => blindJump),
      { about: `How many addresses to skip, 1 to ${farthestJump}; otherwise ${blindJump}`, value: "N" }
    )
  },
  output: Schema.Array(
    Schema.Struct({
      /** The wallet's fingerprint, as in logs. */
      wallet: Schema.String,
      /** The next index before, and now. */
      from: Schema.Number,
      next: Schema.Number,
      usedBy: Schema.Array(Schema.String)
    })
  ),
  refusals: [],
  audit: ({ by }) => ({ by }),
  run: Effect.fnUntraced(function* ({ by }) {
    const { Jumps } = yield* lazily(() => import("./numberingJumps.ts"))
    const { allWalletUsers } = yield* lazily(() => import("./walletUsers.ts"))
    const { jump } = yield* Jumps
    const users = yield* allWalletUsers
    return (yield* jump(by)).map((jumped) => ({
      ...jumped,
      usedBy: users.filter(({ fingerprint }) => fingerprint === jumped.wallet).map(({ name }) => name)
    }))
  })
})
