import { Data, Effect, Layer } from "effect"
import { allWalletUsers } from "./walletUsers.ts"

/** One wallet is used in both modes: a test payment could get the address of a live one. */
export class WalletInBothModes extends Data.TaggedError("WalletInBothModes")<{ readonly message: string }> {}

/** Refuses to start with a wallet that is used in both modes. Keys are not shown. */
export const refuseSharedWallets = Layer.effectDiscard(
  Effect.gen(function* () {
    const users = yield* allWalletUsers
    const shared = users.flatMap((live) =>
      users.flatMap((test) =>
        live.mode === "live" && test.mode === "test" && live.fingerprint === test.fingerprint ? [[live, test]] : []
      )
    )
    if (shared.length === 0) return
    const pairs = shared.map((pair) => pair.map(({ name }) => name).join(" and "))
    return yield* new WalletInBothModes({
      message:
        `One wallet is used in both modes by ${pairs.join("; by ")}: test payments must never share addresses with live ` +
        "ones. Give wallets.live or wallets.test another account's extended public key"
    })
  })
)
