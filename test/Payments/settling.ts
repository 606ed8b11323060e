import { expect } from "@effect/vitest"
import { Array as Arr, Effect, Layer, Logger, LogLevel, TestClock } from "effect"
import { getAddress, numberToHex, pad } from "viem"
import * as Balances from "../../src/Chains/balances/BalancesRepo.ts"
import * as CorroborationRepo from "../../src/Chains/corroboration/CorroborationRepo.ts"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { Mode, Network } from "../../src/Domain/Chain.ts"
import type { NewPayment, Payment } from "../../src/Domain/Payment.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { DeliveryBell } from "../../src/Webhooks/queue/DeliveryBell.ts"
import { someNewPayment } from "../lib/payments.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testChain, testSettingsLayer } from "../lib/settings.ts"
import { execute, inTransaction, migratedDatabase, rows } from "../lib/store.ts"

export const network: Network = { chain: "base", mode: "test" }
export const elsewhere: Network = { chain: "optimism", mode: "test" }
export const confirmations = 3
export const address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
const wallet = "w"

/** Messages of the alarms, the only other log lines than changes of status. */
export const alarms: Array<unknown> = []
/** The subject of each of them. */
export const alarmedAbout: Array<unknown> = []
/** The log lines of changes of status. */
export const loggedTransitions: Array<unknown> = []
const heard = Logger.replace(
  Logger.defaultLogger,
  Logger.make(({ annotations, logLevel, message }) => {
    if (logLevel === LogLevel.Info) return void loggedTransitions.push(Object.fromEntries(annotations))
    alarms.push(Array.isArray(message) ? message[0] : message)
    alarmedAbout.push(Object.fromEntries(annotations))
  })
)
const hearNothingYet = Effect.sync(() => {
  for (const heardBefore of [alarms, alarmedAbout, loggedTransitions]) heardBefore.splice(0)
})

/** The settlement with these settings, on a new store. */
export const withSettings = (over: Parameters<typeof testSettingsLayer>[1]) =>
  Layer.unwrapScoped(
    Effect.map(migratedDatabase, (path) =>
      settlementLayer.pipe(
        Layer.provideMerge(Layer.provideMerge(Outbox.layer, DeliveryBell.layer)),
        Layer.provideMerge(Sql.layer(path)),
        Layer.provideMerge(testSettingsLayer(path, over)),
        Layer.provideMerge(heard),
        Layer.provide(Layer.effectDiscard(hearNothingYet))
      )
    )
  )
/** The settlement of these chains. */
export const withChains = (...chains: ReadonlyArray<Parameters<typeof testChain>[0]>) =>
  withSettings({ chains: chains.map(testChain) })
export const layer = withChains({})
/** A test of the settlement of one chain. */
export const test = scopedTest(layer)
/** The same with another chain beside it. */
export const twoChains = withChains({}, { chain: elsewhere.chain })
export const testOfTwo = scopedTest(twoChains)

/** A chain with a block a second whose block `n` has the time `n`; a payment is made at block 100. */
export const createdAt = 100_000
const expiresAt = createdAt + 3_600_000
export const lastOnTime = expiresAt / 1000 + 60

export const block = (number: number) => ({ number, hash: `0x${number}`, time: number })

/** A payment that is watched from block 100 on, and the expiry of payments beside the test. */
export const startWith = Effect.fnUntraced(function* (over: Partial<NewPayment> = {}) {
  yield* TestClock.setTime(createdAt)
  const payment = yield* inTransaction(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* tx.run("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'default', 0)")
      yield* tx.run("INSERT INTO wallets (fingerprint, next_index, account_number) VALUES (?, 1, 3)", [wallet])
      yield* LedgerRepo.startScan(network, block(100), undefined)
      const stored = yield* Repo.insert(someNewPayment({ address, createdAt, expiresAt, ...over }), {
        wallet,
        index: 0
      })
      return stored ?? (yield* Effect.dieMessage("not inserted"))
    })
  )
  const settlement = yield* Settlement
  yield* Effect.forkScoped(settlement.expire)
  return payment
})
export const start = Effect.suspend(() => startWith())

/** These networks are read from that block on. */
export const startScans = (at: number, ...networks: ReadonlyArray<Network>) =>
  inTransaction(Effect.forEach(networks, (one) => LedgerRepo.startScan(one, block(at), undefined), { concurrency: 1 }))

/** An address that a lost copy of the database assigned. */
export const lost = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
export const losePayment = (to = lost, mode: Mode = "test", index = 7) =>
  execute("INSERT INTO gap_addresses VALUES (?, ?, ?, ?, 0)", [to, mode, wallet, index])

/** A payment beside the first. */
export const payAgain = (index: number, over: Partial<NewPayment>) =>
  Effect.flatMap(
    inTransaction(Repo.insert(someNewPayment({ merchantRef: `order ${index}`, ...over }), { wallet, index })),
    (stored) => (stored === undefined ? Effect.dieMessage("not inserted") : Effect.succeed(stored))
  )

/** `count` further payments, each at its own address. */
export const crowd = (count: number) =>
  Effect.forEach(
    Arr.range(1, count),
    (index) => payAgain(index, { address: getAddress(pad(numberToHex(index), { size: 20 })) }),
    { concurrency: 1 }
  )

/** To the payment, in the one transaction of its block that matters. */
export const transfer = (blockNumber: number, amount: bigint, over: Partial<DatedTransfer> = {}): DatedTransfer => ({
  address: address.toLowerCase(),
  amount,
  blockHash: `0x${blockNumber}`,
  blockNumber,
  blockTime: blockNumber,
  currency: "ETH",
  position: "tx:0",
  txHash: `0xt${blockNumber}`,
  ...over
})

export const usdcElsewhere = (number: number, amount: bigint): DatedTransfer => ({
  ...transfer(number, amount),
  currency: "USDC",
  position: "log:0"
})

interface Tick {
  readonly head: number
  readonly on?: Network
  readonly transfers?: ReadonlyArray<DatedTransfer>
  /** The common ancestor, where there was a reorg. */
  readonly ancestor?: number
  readonly corroborated?: boolean
  /** Where balances were compared; otherwise at the head. */
  readonly checked?: number
  readonly safe?: number
  readonly finalized?: number
}

/** Expiry follows in commits of its own: this gives it all the turns that it may want. */
export const untilExpired = Effect.flatMap(Writer, (writer) => Effect.repeatN(writer.write(Effect.void), 5))

/** What the watcher does at the end of a tick. */
export const tick = ({
  ancestor,
  corroborated = true,
  finalized,
  head,
  on = network,
  safe,
  transfers = [],
  ...tick
}: Tick) =>
  Effect.gen(function* () {
    const settlement = yield* Settlement
    yield* inTransaction(
      Effect.gen(function* () {
        const touched = new Set<LedgerRepo.Touched>()
        if (ancestor !== undefined) {
          for (const id of yield* LedgerRepo.orphanAbove(on, block(ancestor))) touched.add(id)
        }
        for (const id of yield* LedgerRepo.keepReceipts(on, transfers, corroborated)) touched.add(id)
        yield* LedgerRepo.keepBlocks(on, [head - confirmations + 1, head].map(block))
        yield* LedgerRepo.moveScan(on, block(head))
        yield* Balances.moveChecked(on, block(tick.checked ?? head))
        yield* LedgerRepo.setTags(on, { safe, finalized })
        yield* settlement.settle({ network: on, head: block(head) }, touched)
      })
    )
    yield* untilExpired
  })

/** A second provider has these, with the chain read up to `head`. */
export const corroborate = (head: number, transfers: ReadonlyArray<DatedTransfer>, on = network) =>
  Effect.gen(function* () {
    const settlement = yield* Settlement
    const all = Effect.forEach(transfers, (one) => CorroborationRepo.setCorroborated(on, one), { concurrency: 1 })
    yield* inTransaction(
      Effect.flatMap(all, (touched) => settlement.settle({ network: on, head: block(head) }, touched))
    )
    yield* untilExpired
  })

/** The same, with the clock at the head's time. */
export const scanTo = (head: number, ...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.zipRight(TestClock.setTime(head * 1000), tick({ head, transfers }))

/** `<status> <kind> <amount> <transaction>` of each. */
export const exceptions = (payment: Payment) =>
  Effect.gen(function* () {
    const all = yield* Exceptions.ofPayment(yield* Reader, payment.id)
    return all.map(({ amount, kind, status, txHash }) => `${status} ${kind} ${amount} ${txHash}`)
  })

/** The payment as it is stored, with the events of its status and its transitions. */
export const look = ({ id }: Payment) =>
  Effect.gen(function* () {
    const payment = yield* Repo.byId(yield* Reader, id)
    const events = yield* rows<{ kind: string; created_at: number; body: string }>(
      "SELECT kind, created_at, body FROM events WHERE payment_id = ? AND kind <> 'payment.exception' ORDER BY sequence",
      [id]
    )
    const transitions = yield* rows<{ to_status: string; at: number }>(
      "SELECT to_status, at FROM transitions WHERE payment_id = ? ORDER BY ordinal",
      [id]
    )
    return { payment, events, transitions }
  })

/** The kinds of the events of its status, without `payment.`. */
export const kindsOf = (payment: Payment) =>
  Effect.map(look(payment), ({ events }) => events.map(({ kind }) => kind.replace("payment.", "")))

/** A payment that has been confirmed by all of its money. */
export const confirmedOnce = Effect.gen(function* () {
  const payment = yield* start
  yield* tick({ head: 130, transfers: [transfer(120, 1000n)] })
  return payment
})

/** The payment's status, with the reason why it failed: `failed: reorged`. */
export const stateOf = (payment: Payment) =>
  Effect.map(look(payment), ({ payment }) => [payment?.status, payment?.failureReason ?? []].flat().join(": "))

/** The payment's state after a tick. */
export const after = (payment: Payment, step: Tick) => Effect.zipRight(tick(step), stateOf(payment))
/** The same, with the clock at the head's time. */
export const afterScan = (payment: Payment, head: number, ...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.zipRight(scanTo(head, ...transfers), stateOf(payment))

/** Checks the payment's state, and its exceptions, in any order. */
export const shows = (payment: Payment, state: string, ...open: ReadonlyArray<string>) =>
  Effect.map(Effect.zip(stateOf(payment), exceptions(payment)), ([is, all]) =>
    expect([is, ...all.toSorted()]).toEqual([state, ...open.toSorted()])
  )
