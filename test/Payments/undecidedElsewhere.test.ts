import { describe, expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import * as CorroborationRepo from "../../src/Chains/corroboration/CorroborationRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { abandon } from "../../src/Payments/cancellation.ts"
import { accept } from "../../src/Payments/decisions/accept.ts"
import { noteRefund } from "../../src/Payments/decisions/refund.ts"
import { refuseDroppedChains } from "../../src/Payments/openNeeds.ts"
import { Reader, type StoreUnavailable, type Tx } from "../../src/Sql.ts"
import { testChain, testSettingsLayer } from "../lib/settings.ts"
import { inTransaction, rows } from "../lib/store.ts"
import { exceptionOf, testOfTwo as test } from "./deciding.ts"
import {
  block,
  elsewhere,
  exceptions,
  lastOnTime,
  network,
  scanTo,
  shows,
  start,
  startScans,
  stateOf,
  tick,
  transfer,
  untilExpired,
  usdcElsewhere
} from "./settling.ts"

// Money that only one provider reports, on another chain than the payment's.

/** The last second in which a payment waits for other chains. */
const longest = lastOnTime + 120
const stray = usdcElsewhere(250, 7n)

/** Both chains read up to that second, with these transfers on the other one, which one provider alone reports. */
const elsewhereAt = (second: number, ...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.zipRight(
    TestClock.setTime(second * 1000),
    tick({ head: second, on: elsewhere, transfers, corroborated: false })
  )

const startBeside = Effect.tap(start, startScans(7, elsewhere))

/** A payment that has ended while a stray transfer was undecided. */
const endedBeside = Effect.tap(startBeside, Effect.zipRight(elsewhereAt(260, stray), scanTo(longest + 1)))

/** The evidence of another provider of the other chain about the stray transfer. */
const decidedBy = ({ id }: Payment, decide: Effect.Effect<unknown, StoreUnavailable, Tx>, head: number) =>
  Effect.gen(function* () {
    const settlement = yield* Settlement
    yield* inTransaction(Effect.zipRight(decide, settlement.settle({ network: elsewhere, head: block(head) }, [id])))
    yield* untilExpired
  })
const corroborated = CorroborationRepo.setCorroborated(elsewhere, stray)
const refuted = CorroborationRepo.refute(elsewhere, stray)

describe("what is undecided on another chain", () => {
  test("keeps a payment open for two minutes, and is an exception that says so from its end on", function* () {
    const payment = yield* startBeside
    yield* elsewhereAt(260, stray)
    yield* scanTo(longest)
    yield* shows(payment, "pending")
    yield* scanTo(longest + 1)
    yield* shows(payment, "expired", "open unattributed 7 0xt250")
    const events = yield* rows<{ body: string }>("SELECT body FROM events WHERE kind = 'payment.exception'")
    expect(events.map(({ body }) => JSON.parse(body).exception)).toMatchObject([
      { kind: "unattributed", chain: "optimism", txHash: "0xt250", uncorroborated: true }
    ])
  })

  test("holds no price by new transfers, one a block, for as long as someone sends them", function* () {
    const payment = yield* startBeside
    for (let second = 250; second <= longest + 1; second += 20) yield* elsewhereAt(second, usdcElsewhere(second, 1n))
    yield* elsewhereAt(longest + 1, usdcElsewhere(longest + 1, 1n))
    yield* scanTo(longest + 1)
    expect(yield* stateOf(payment)).toBe("expired")
  })

  test("is the reason of the end where a second provider has it in time", function* () {
    const payment = yield* startBeside
    yield* elsewhereAt(260, stray)
    yield* scanTo(longest)
    yield* decidedBy(payment, corroborated, longest)
    yield* shows(payment, "failed: wrong_chain", "open wrong_chain 7 0xt250")
  })

  test("becomes an ordinary exception once a second provider has it, and changes no end", function* () {
    const payment = yield* endedBeside
    yield* decidedBy(payment, corroborated, longest + 1)
    yield* shows(payment, "expired", "gone unattributed 7 0xt250", "open wrong_chain 7 0xt250")
  })

  test("goes away once it is refuted", function* () {
    const payment = yield* endedBeside
    yield* decidedBy(payment, refuted, longest + 1)
    yield* shows(payment, "expired", "gone unattributed 7 0xt250")
  })

  test("does not fail an underpaid payment later than that, and opens nothing where it comes after the end", function* () {
    const payment = yield* startBeside
    yield* tick({ head: 120, transfers: [transfer(119, 400n)] })
    yield* elsewhereAt(260, stray)
    yield* scanTo(longest + 1)
    yield* elsewhereAt(longest + 9, usdcElsewhere(longest + 5, 9n))
    const open = ["open unattributed 7 0xt250", "open underpaid 400 0xt119"]
    yield* shows(payment, "failed: insufficient_amount", ...open)
  })

  test("is not reported twice when a reorg mines it again", function* () {
    const payment = yield* startBeside
    yield* tick({ head: 260, on: elsewhere, transfers: [stray] })
    expect(yield* exceptions(payment)).toEqual(["open wrong_chain 7 0xt250"])
    const again = { ...usdcElsewhere(255, 7n), txHash: "0xt250" }
    yield* TestClock.setTime(261_000)
    yield* tick({ head: 261, on: elsewhere, ancestor: 249, transfers: [again], corroborated: false })
    yield* scanTo(longest + 1)
    yield* shows(payment, "expired", "open wrong_chain 7 0xt250")
  })

  test("is left to decide where its payment is accepted for other money", function* () {
    const payment = yield* startBeside
    yield* elsewhereAt(250, stray)
    yield* scanTo(251, transfer(119, 400n))
    yield* accept(payment.id, undefined, {})
    yield* shows(payment, "confirmed", "open unattributed 7 0xt250")
  })

  test("that was accepted or sent back is not another exception once a second provider has it", function* () {
    const payment = yield* endedBeside
    yield* accept((yield* exceptionOf(payment.id)).id, undefined, {})
    expect(yield* stateOf(payment)).toBe("confirmed")
    yield* decidedBy(payment, corroborated, longest + 1)
    yield* shows(payment, "confirmed", "accepted unattributed 7 0xt250")
  })

  test("that was sent back in part is open for the rest once a second provider has it", function* () {
    const payment = yield* endedBeside
    yield* noteRefund((yield* exceptionOf(payment.id)).id, undefined, { amount: 5n })
    yield* decidedBy(payment, corroborated, longest + 1)
    expect((yield* exceptions(payment)).toSorted()).toEqual(["gone unattributed 2 0xt250", "open wrong_chain 2 0xt250"])
  })
})

test("what is undecided on the payment's own chain keeps it open in the blocks that decide, and not in later ones", function* () {
  const payment = yield* startBeside
  yield* tick({ head: 120, transfers: [usdcElsewhere(119, 5n)], corroborated: false })
  yield* TestClock.setTime((longest + 1) * 1000)
  yield* tick({ head: longest + 1 })
  expect(yield* stateOf(payment)).toBe("pending")
  yield* inTransaction(CorroborationRepo.setCorroborated(network, usdcElsewhere(119, 5n)))
  // Someone sends one in each block: the newest ones are always undecided.
  const late = usdcElsewhere(longest + 1, 1n)
  yield* tick({ head: longest + 2, transfers: [late], corroborated: false })
  expect(yield* stateOf(payment)).toBe("failed: wrong_token")
})

describe("a chain with undecided money", () => {
  /** Why a start with the payment's own chain alone is refused; undefined where it is not. */
  const startWithout = Effect.gen(function* () {
    const ownChain = testSettingsLayer("unused", { chains: [testChain({})] })
    const start = refuseDroppedChains.pipe(
      Layer.provide(Layer.succeed(Reader, yield* Reader)),
      Layer.provide(ownChain),
      Layer.build
    )
    return yield* Effect.match(start, { onFailure: ({ message }) => message, onSuccess: () => undefined })
  })

  test("is not dropped while a payment that is open on another one may wait for it, until it is given up", function* () {
    const payment = yield* startBeside
    yield* elsewhereAt(260, stray)
    const refused = yield* startWithout
    expect(refused).toContain(`chains.optimism.test: money of ${payment.id} is not yet corroborated there`)
    expect(refused).toContain("tilld payments abandon --chain optimism --mode test")
    expect(yield* abandon(elsewhere)).toEqual({ abandoned: 0, givenUp: 1 })
    expect(yield* startWithout).toBeUndefined()
    yield* shows(payment, "pending")
    expect(yield* abandon(elsewhere)).toEqual({ abandoned: 0, givenUp: 0 })
  })

  test("is not dropped either while an exception is open for it, which goes away when it is given up", function* () {
    const payment = yield* endedBeside
    expect(yield* startWithout).toContain(payment.id)
    expect(yield* abandon(elsewhere)).toEqual({ abandoned: 0, givenUp: 1 })
    expect(yield* exceptions(payment)).toEqual(["gone unattributed 7 0xt250"])
    expect(yield* startWithout).toBeUndefined()
    // What a scan of the chain finds again is there again.
    yield* elsewhereAt(longest + 9, stray)
    expect(yield* exceptions(payment)).toEqual(["open unattributed 7 0xt250"])
  })

  test("is dropped once its money is decided", function* () {
    const payment = yield* endedBeside
    yield* noteRefund((yield* exceptionOf(payment.id)).id, undefined, {})
    expect(yield* startWithout).toBeUndefined()
    expect(yield* abandon(elsewhere)).toEqual({ abandoned: 0, givenUp: 0 })
  })
})
