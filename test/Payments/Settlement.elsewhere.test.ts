import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Reader, Writer } from "../../src/Sql.ts"
import {
  block,
  confirmations,
  crowd,
  elsewhere,
  exceptions,
  lastOnTime,
  look,
  scanTo,
  start,
  tick,
  usdcElsewhere,
  withChains
} from "./settling.ts"

const twoChains = withChains({}, { chain: "optimism" })

const startScanElsewhere = Effect.flatMap(Writer, (writer) =>
  writer.write(LedgerRepo.startScan(elsewhere, block(7), undefined))
)

it.scoped(
  "money on another chain only is an exception at once, and fails the payment as wrong_chain at the deadline",
  () =>
    Effect.gen(function* () {
      const payment = yield* start
      yield* startScanElsewhere
      yield* tick({ head: 300, on: elsewhere, transfers: [usdcElsewhere(300, 5n)] })
      expect((yield* look(payment)).payment?.status).toBe("pending")
      expect(yield* exceptions(payment)).toEqual(["open wrong_chain 5 0xt300"])
      yield* scanTo(lastOnTime + confirmations)
      expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "wrong_chain" })
    }).pipe(Effect.provide(twoChains))
)

it.scoped("a payment waits for the balances of another reachable chain, and ends by what they show", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScanElsewhere
    const end = lastOnTime + confirmations
    yield* TestClock.setTime(end * 1000)
    yield* tick({ head: end, on: elsewhere, checked: lastOnTime })
    yield* tick({ head: end })
    expect((yield* look(payment)).payment?.status).toBe("pending")
    // Its balances are compared: this alone must wake the one that waits.
    yield* tick({ head: end, on: elsewhere, checked: end, transfers: [usdcElsewhere(end, 5n)] })
    expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "wrong_chain" })
  }).pipe(Effect.provide(twoChains))
)

it.scoped(
  "a chain that has been compared and where nothing came is waited for no longer, nor one that was never read",
  () =>
    Effect.gen(function* () {
      const end = lastOnTime + confirmations
      const after = Effect.fnUntraced(function* (checked: number | undefined) {
        const payment = yield* start
        yield* TestClock.setTime(end * 1000)
        if (checked !== undefined) {
          yield* startScanElsewhere
          yield* tick({ head: end, on: elsewhere, checked })
        }
        yield* tick({ head: end })
        return (yield* look(payment)).payment?.status
      })
      const each = (checked: number | undefined) =>
        Effect.scoped(Effect.provide(after(checked), Layer.fresh(twoChains)))
      expect(yield* each(lastOnTime)).toBe("pending")
      expect(yield* each(lastOnTime + 1)).toBe("expired")
      expect(yield* each(undefined)).toBe("expired")
    })
)

it.scoped("payments that wait for another chain do not delay later ones, however many wait", () =>
  Effect.gen(function* () {
    yield* start
    // More than one commit ends.
    const last = (yield* crowd(250)).at(-1)
    if (last === undefined) return yield* Effect.dieMessage("not inserted")
    yield* startScanElsewhere
    const end = lastOnTime + confirmations
    yield* TestClock.setTime(end * 1000)
    const astray = { ...usdcElsewhere(300, 5n), address: last.address.toLowerCase() }
    yield* tick({ head: end, on: elsewhere, checked: lastOnTime, transfers: [astray] })
    yield* tick({ head: end })
    const reader = yield* Reader
    expect(yield* reader.all("SELECT status, count(*) AS n FROM payments GROUP BY status ORDER BY status")).toEqual([
      { status: "failed", n: 1 },
      { status: "pending", n: 250 }
    ])
    expect((yield* look(last)).payment).toMatchObject({ status: "failed", failureReason: "wrong_chain" })
  }).pipe(Effect.provide(twoChains))
)

it.scoped("a payment does not wait for an unreachable chain; money found there later is an exception", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScanElsewhere
    const end = lastOnTime + confirmations
    yield* tick({ head: end - 200, on: elsewhere })
    yield* scanTo(end)
    expect((yield* look(payment)).payment?.status).toBe("expired")
    yield* tick({ head: end, on: elsewhere, transfers: [usdcElsewhere(end - 100, 5n)] })
    expect((yield* look(payment)).payment?.status).toBe("expired")
    expect(yield* exceptions(payment)).toEqual([`open wrong_chain 5 0xt${end - 100}`])
  }).pipe(Effect.provide(twoChains))
)

it.scoped("a payment waits two minutes for a chain whose balances cannot be reconciled", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScanElsewhere
    const twoMinutes = lastOnTime + 120
    yield* TestClock.setTime(twoMinutes * 1000)
    yield* tick({ head: twoMinutes, on: elsewhere, checked: 300 })
    yield* tick({ head: twoMinutes })
    expect((yield* look(payment)).payment?.status).toBe("pending")
    yield* tick({ head: twoMinutes + 1, on: elsewhere, checked: 300 })
    yield* scanTo(twoMinutes + 1)
    expect((yield* look(payment)).payment?.status).toBe("expired")
  }).pipe(Effect.provide(twoChains))
)
