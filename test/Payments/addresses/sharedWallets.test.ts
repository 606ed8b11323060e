import { expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { insertWallet } from "../../../src/Auth/AccountsRepo.ts"
import { AccountId } from "../../../src/Domain/Ids.ts"
import { refuseSharedWallets } from "../../../src/Payments/addresses/Addresses.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import * as Sql from "../../../src/Sql.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { liveXpub, testSettingsLayer, testXpub } from "../../lib/settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"

/** Accounts with wallets of their own, and then a start, which is refused with a message or not. */
const start = (own: ReadonlyArray<readonly [id: string, mode: "live" | "test", xpub: string]>) =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const wallets = { live: undefined, test: Redacted.make(testXpub) }
    const layer = Layer.provideMerge(Sql.layer(path), testSettingsLayer(path, { wallets }))
    return yield* Effect.gen(function* () {
      const { write } = yield* Writer
      for (const [id, mode, xpub] of own) {
        const { fingerprint } = hdWallet(xpub)
        const make = Effect.flatMap(Tx, (tx) =>
          tx.run("INSERT OR IGNORE INTO accounts (id, name, created_at) VALUES (?, 'Shop', 0)", [id])
        )
        const sealed = new Uint8Array([1])
        yield* write(Effect.zipRight(make, insertWallet(AccountId.make(id), { mode, fingerprint, sealed })))
      }
      return yield* Effect.match(Effect.scoped(Layer.build(refuseSharedWallets)), {
        onFailure: ({ message }) => message,
        onSuccess: () => undefined
      })
    }).pipe(Effect.provide(layer))
  }).pipe(Effect.scoped)

const inConfiguration = "account acct_shop (live) and the configuration (wallets.test)"
const inTwoAccounts = "account acct_one (live) and account acct_two (test)"

it.live.each([
  ["that the configuration has in the other mode", [["acct_shop", "live", testXpub]], inConfiguration],
  [
    "that two accounts use in different modes",
    [
      ["acct_one", "live", liveXpub],
      ["acct_two", "test", liveXpub]
    ],
    inTwoAccounts
  ]
] as const)("a start with a wallet %s is refused, and the key is not shown", ([, own, users]) =>
  Effect.gen(function* () {
    const message = yield* start(own)
    expect(message).toContain(users)
    expect(message).not.toContain(own[0][2].slice(0, 12))
  })
)

it.live("a wallet may be shared in one mode", () =>
  Effect.gen(function* () {
    const own = [
      ["acct_one", "live", liveXpub],
      ["acct_two", "live", liveXpub],
      ["acct_three", "test", testXpub]
    ] as const
    expect(yield* start(own)).toBeUndefined()
  })
)
