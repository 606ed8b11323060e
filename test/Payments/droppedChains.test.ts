import { expect } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import { refuseDroppedChains } from "../../src/Payments/droppedChains.ts"
import * as Sql from "../../src/Sql.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testChain, testSettingsLayer } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"

const insert = (n: number, status: string, chain: string, mode = "test") =>
  Effect.flatMap(Tx, (tx) =>
    tx.run(
      `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
         wallet_index, status, created_at, expires_at, metadata, ended_at)
       VALUES (?, ?, 'a', ?, ?, '1', 'ETH', ?, ?, 'w', ?, ?, 0, 1, '{}', ?)`,
      [`pay_${n}`, `${n}`, mode, `ref-${n}`, chain, `0x${n}`, n, status, status === "expired" ? 1 : null]
    )
  )

liveTest(
  "a start without a chain that open payments wait for is refused, one without an unused chain is not",
  function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const writer = yield* Writer
      yield* writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run("INSERT INTO accounts (id, name, created_at) VALUES ('a', 'A', 0)")
          yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 9)")
          yield* insert(1, "pending", "base")
          yield* insert(2, "detecting", "base")
          yield* insert(3, "expired", "optimism")
          yield* insert(4, "pending", "polygon", "live")
        })
      )
    }).pipe(Effect.provide(Sql.layer(path)))

    const start = (chains: ReadonlyArray<ReturnType<typeof testChain>>) =>
      refuseDroppedChains.pipe(
        Layer.provide(Sql.layer(path)),
        Layer.provide(testSettingsLayer(path, { chains })),
        Layer.build,
        Effect.exit
      )
    const livePolygon = testChain({ chain: "polygon", mode: "live" })
    const refused = yield* start([livePolygon])
    expect(Exit.isFailure(refused) && Cause.pretty(refused.cause)).toContain("chains.base.test (2 open)")
    expect(Exit.isFailure(refused) && Cause.pretty(refused.cause)).toContain(
      "tilld payments abandon --chain base --mode test"
    )
    // The same chain in the other mode is another one.
    const inTestOnly = yield* start([testChain({ chain: "base" }), testChain({ chain: "polygon" })])
    expect(Exit.isFailure(inTestOnly) && Cause.pretty(inTestOnly.cause)).toContain("chains.polygon.live (1 open)")
    expect(Exit.isSuccess(yield* start([testChain({ chain: "base" }), livePolygon]))).toBe(true)
  }
)
