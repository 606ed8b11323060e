import { expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Accounts } from "../../src/Auth.ts"
import { byId } from "../../src/Payments/PaymentsRepo.ts"
import { paymentHistoryOf, Story } from "../../src/Payments/paymentHistory.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { tempStore } from "../lib/store.ts"

const id = "pay_aaaaaaaaaaaaaaaaaaaaaa"

// A payment that a reorg took once, and whose endpoint was down at first.
const rows = [
  "INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 1)",
  `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
     wallet_index, status, created_at, expires_at, metadata, amount_received, tx_hash, confirmed_at, ended_at)
   VALUES ('${id}', 't', 'default', 'test', 'order 1', '1000000', 'USDC', 'base', '0xA', 'w', 0, 'confirmed',
     0, 3600000, '{}', '1000000', '0xt', 30000, 30000)`,
  `INSERT INTO transitions (payment_id, ordinal, from_status, to_status, at) VALUES
     ('${id}', 1, 'detecting', 'confirmed', 30000), ('${id}', 0, 'pending', 'detecting', 20000)`,
  `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
     payment_id, canonical, corroborated, seen_at, denied_by, unverifiable)
   VALUES ('base', 'test', '0xb2', '0xa', 'log:1', 11, 22, '0xt', 'USDC', '1000000', '${id}', 1, 1, 22000, NULL, 0),
     ('base', 'test', '0xb1', '0xa', 'log:0', 10, 20, '0xt', 'USDC', '1000000', '${id}', 0, 0, 20000, NULL, 1),
     ('base', 'test', '0xb3', '0xa', 'log:2', 12, 24, '0xu', 'USDC', '7', '${id}', 1, 0, 24000, 'rpc.example', 0)`,
  `INSERT INTO exceptions (id, address, key, payment_id, kind, chain, mode, tx_hash, currency, amount, opened_at)
   VALUES ('exc_1', '0x70997970c51812dc3a010c7d01b50e0d17dc79c8', 'late:base:0xl:USDC', '${id}', 'late', 'base', 'test', '0xl', 'USDC', '7', 25000)`,
  `INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at) VALUES
     ('evt_1', 'default', 'test', '${id}', 'payment.created', '{}', 0),
     ('evt_2', 'default', 'test', '${id}', 'payment.confirmed', '{}', 30000)`,
  `INSERT INTO deliveries (sequence, id, event_id, payment_id, account_id, mode, own_url, target, url, status, attempts,
     next_attempt_at, created_at, done_at)
   VALUES (1, 'dlv_1', 'evt_1', '${id}', 'default', 'test', 1, 't', 'https://shop.example.com/', 'delivered', 2, NULL, 0,
       60100),
     (2, 'dlv_2', 'evt_2', '${id}', 'default', 'test', 1, 't', 'https://shop.example.com/', 'pending', 0, 40000, 30000,
       NULL)`,
  `INSERT INTO attempts (delivery, number, redelivery, started_at, ended_at, address, status, error, body_start) VALUES
     (1, 2, 1, 60000, 60100, '93.184.216.34', 200, NULL, 'ok'), (1, 1, 0, 0, 30000, NULL, NULL, 'timeout', NULL)`
]

const store = Accounts.layer.pipe(Layer.provideMerge(tempStore), Layer.merge(testSettingsLayer("")))

it.live(
  "a payment's history is in the order in which it happened, each attempt with its delivery, each receipt with its evidence",
  () =>
    Effect.gen(function* () {
      const writer = yield* Writer
      const reader = yield* Reader
      yield* writer.write(Effect.flatMap(Tx, (tx) => Effect.forEach(rows, (row) => tx.run(row), { concurrency: 1 })))
      const payment = yield* byId(reader, id)
      if (payment === undefined) return expect.unreachable()
      const story = yield* paymentHistoryOf(reader, payment, 200)

      expect(story.payment).toMatchObject({ id, account: "default", mode: "test", status: "confirmed" })
      expect(story.transitions).toEqual([
        { from: "pending", to: "detecting", at: "1970-01-01T00:00:20.000Z" },
        { from: "detecting", to: "confirmed", at: "1970-01-01T00:00:30.000Z" }
      ])
      expect(
        story.receipts.map(({ blockNumber, blockTime, canonical }) => [blockNumber, blockTime, canonical])
      ).toEqual([
        [10, "1970-01-01T00:00:20.000Z", false],
        [11, "1970-01-01T00:00:22.000Z", true],
        [12, "1970-01-01T00:00:24.000Z", true]
      ])
      const evidence = story.receipts.map(({ corroborated, deniedBy, unverifiable }) => [
        corroborated,
        deniedBy,
        unverifiable
      ])
      expect(evidence).toEqual([
        [false, undefined, true],
        [true, undefined, undefined],
        [false, "rpc.example", undefined]
      ])
      expect(story.exceptions).toEqual([
        {
          id: "exc_1",
          merchantRef: "order 1",
          kind: "late",
          chain: "base",
          mode: "test",
          address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
          payment: id,
          currency: "USDC",
          amount: "7",
          txHash: "0xl",
          detectedAt: "1970-01-01T00:00:25.000Z"
        }
      ])
      expect(story.events.map(({ kind }) => kind)).toEqual(["payment.created", "payment.confirmed"])
      expect(story.deliveries).toEqual([
        {
          id: "dlv_1",
          event: "evt_1",
          kind: "payment.created",
          payment: id,
          merchantRef: "order 1",
          account: "default",
          mode: "test",
          createdAt: "1970-01-01T00:00:00.000Z",
          url: "https://shop.example.com/",
          status: "delivered",
          attemptsMade: 2,
          lastAttempt: {
            number: 2,
            redelivery: true,
            startedAt: "1970-01-01T00:01:00.000Z",
            durationMillis: 100,
            status: 200,
            bodyStart: "ok"
          },
          attempts: [
            {
              number: 1,
              startedAt: "1970-01-01T00:00:00.000Z",
              durationMillis: 30_000,
              error: "timeout"
            },
            {
              number: 2,
              redelivery: true,
              startedAt: "1970-01-01T00:01:00.000Z",
              durationMillis: 100,
              address: "93.184.216.34",
              status: 200,
              bodyStart: "ok"
            }
          ]
        },
        {
          id: "dlv_2",
          event: "evt_2",
          kind: "payment.confirmed",
          payment: id,
          merchantRef: "order 1",
          account: "default",
          mode: "test",
          createdAt: "1970-01-01T00:00:30.000Z",
          url: "https://shop.example.com/",
          status: "pending",
          nextAttemptAt: "1970-01-01T00:00:40.000Z",
          attemptsMade: 0,
          attempts: []
        }
      ])
      // It must survive the way to the command.
      const json = Schema.parseJson(Story)
      expect(yield* Schema.decode(json)(yield* Schema.encode(json)(story))).toEqual(story)
    }).pipe(Effect.provide(store))
)
