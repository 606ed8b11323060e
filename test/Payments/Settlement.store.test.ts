import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as Balances from "../../src/Chains/balances/BalancesRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { StoreUnavailable, type Tx, Writer } from "../../src/Sql.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { block, confirmations, lastOnTime, layer, look, network, start, untilExpired } from "./settling.ts"

it.scoped("payments that are over while the store is full end a second after it has room again", () =>
  Effect.gen(function* () {
    const payment = yield* start
    const writer = yield* Writer
    let isFull = true
    const full = Layer.succeed(Writer, {
      write: <A, E>(command: Effect.Effect<A, E, Tx>) =>
        Effect.suspend(
          (): Effect.Effect<A, E | StoreUnavailable> =>
            isFull ? new StoreUnavailable({ code: "SQLITE_FULL", message: "full" }) : writer.write(command)
        )
    })
    const { expire, settle } = yield* Effect.provide(Settlement, Layer.fresh(settlementLayer)).pipe(
      Effect.provide(Layer.merge(full, testSettingsLayer("")))
    )
    yield* Effect.forkScoped(expire)
    const end = block(lastOnTime + confirmations)
    yield* writer.write(
      Effect.gen(function* () {
        yield* LedgerRepo.keepBlocks(network, [block(lastOnTime + 1), end])
        yield* LedgerRepo.moveScan(network, end)
        yield* Balances.moveChecked(network, end)
        yield* settle({ network, head: end }, [])
      })
    )
    yield* untilExpired
    expect((yield* look(payment)).payment?.status).toBe("pending")
    isFull = false
    yield* TestClock.adjust("1 second")
    yield* untilExpired
    expect((yield* look(payment)).payment?.status).toBe("expired")
  }).pipe(Effect.provide(layer))
)
