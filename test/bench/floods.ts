import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { commitReading } from "../../src/Chains/watcher/tick.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import * as Sql from "../../src/Sql.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { DeliveryBell } from "../../src/Webhooks/queue/DeliveryBell.ts"
import { someNewPayment } from "../lib/payments.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { count, type Figure, median, millis, times } from "./Figure.ts"

// What a flood of tiny transfers to one payment costs everyone else: the writer's time for one more of them, and for a
// tick that brings nothing. Taken inside the transaction: how long the disk takes to commit is not what they change.

const network: Network = { chain: "base", mode: "test" }
const perBlock = 10_000
const rounds = 100
const first = 100

const block = (number: number) => ({ number, hash: `0x${number.toString(16).padStart(64, "0")}`, time: number })

/** Ten million of them would be the payment's amount. */
const tiny = (payment: Payment, number: number, transfers: number): ReadonlyArray<DatedTransfer> =>
  Array.from({ length: transfers }, (_, i) => ({
    address: payment.address.toLowerCase(),
    amount: payment.amount / 10_000_000n,
    blockHash: block(number).hash,
    blockNumber: number,
    blockTime: number,
    currency: payment.currency,
    position: `log:${i}`,
    txHash: `0x${number.toString(16).padStart(32, "0")}${i.toString(16).padStart(32, "0")}`
  }))

const start = Effect.flatMap(Writer, (writer) =>
  writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* tx.run("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'default', 0)")
      yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 1)")
      yield* LedgerRepo.startScan(network, block(first), undefined)
      const asked = { amount: 10n ** 12n, floor: 10n ** 10n, currency: "USDC", expiresAt: 10 ** 12 } as const
      const payment = yield* Repo.insert(someNewPayment(asked), { wallet: "w", index: 0 })
      return payment ?? (yield* Effect.dieMessage("not inserted"))
    })
  )
)

/** The milliseconds that the writer takes for one tick. */
const tick = Effect.fnUntraced(function* (head: number, transfers: ReadonlyArray<DatedTransfer>) {
  const writer = yield* Writer
  const settlement = yield* Settlement
  const reading = { network, from: block(head - 1), ancestor: undefined, end: block(head), transfers }
  return yield* writer.write(
    Effect.gen(function* () {
      const started = performance.now()
      const stored = yield* commitReading(settlement, { ...reading, corroborated: true, unwatched: false })
      return stored ? performance.now() - started : yield* Effect.dieMessage(`${head} was not stored`)
    })
  )
})

/** `lacking`: what is missing all the time. */
const measure = (receipts: number, lacking: (payment: Payment) => bigint) =>
  Effect.gen(function* () {
    const payment = yield* start
    let head = first
    // One that is to be settled all the time.
    const [partial] = tiny(payment, head + 1, 1)
    if (partial === undefined) return yield* Effect.dieMessage("none")
    yield* tick(++head, [{ ...partial, amount: payment.amount - lacking(payment), position: "log:0" }])
    const timed = Effect.fnUntraced(function* (transfers: number) {
      const times: Array<number> = []
      for (let i = 0; i < rounds; i++) times.push(yield* tick(++head, tiny(payment, head, transfers)))
      return median(times)
    })
    const idleBefore = yield* timed(0)
    const oneBefore = yield* timed(1)
    const floods: Array<number> = []
    for (let i = 0; i < receipts / perBlock; i++) floods.push(yield* tick(++head, tiny(payment, head, perBlock)))
    const idle = yield* timed(0)
    const one = yield* timed(1)
    return { idleBefore, oneBefore, idle, one, flood: Math.max(...floods) }
  })

const fine = (value: number): string => `${value.toFixed(2)} ms`

const receipts = 100_000

/** On a new store. */
const measured = (lacking: (payment: Payment) => bigint) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tilld-floods-"))),
    (folder) => {
      const path = join(folder, "tilld.db")
      const layer = settlementLayer.pipe(
        Layer.provideMerge(Layer.provideMerge(Outbox.layer, DeliveryBell.layer)),
        Layer.provideMerge(Sql.layer(path)),
        Layer.provideMerge(testSettingsLayer(path))
      )
      return Effect.provide(measure(receipts, lacking), layer)
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

const figures = (
  name: string,
  { flood, idle, idleBefore, one, oneBefore }: Effect.Effect.Success<ReturnType<typeof measured>>
): ReadonlyArray<Figure> => [
  {
    what: `one transfer more, ${name}`,
    measured: `the writer's time, ${count(receipts)} tiny ones before it`,
    beside: `${fine(oneBefore)} before them`,
    judged: one,
    floor: { atMost: 5 },
    written: fine
  },
  {
    what: `more in a tick without news, ${name}`,
    measured: `${fine(idle)} with ${count(receipts)} tiny transfers`,
    beside: `${fine(idleBefore)} without`,
    judged: idle - idleBefore,
    floor: { atMost: 1 },
    written: fine
  },
  {
    what: `${count(perBlock)} transfers in a tick, ${name}`,
    measured: `${millis(flood)}, the slowest of ${receipts / perBlock}`,
    beside: `${millis(perBlock * oneBefore)} as so many ticks`,
    judged: flood / (perBlock * oneBefore),
    floor: { atMost: 1 },
    written: times
  }
]

export const floods = Effect.gen(function* () {
  const half = yield* measured(({ amount }) => amount / 2n)
  // Then a tiny transfer may complete the payment: the first ones are looked at.
  const almost = yield* measured(({ floor }) => floor - 1n)
  return [...figures("half paid", half), ...figures("almost paid", almost)]
})
