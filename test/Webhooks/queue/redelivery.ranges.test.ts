import { expect, it } from "@effect/vitest"
import { Effect, Queue, TestClock } from "effect"
import type * as LogRepo from "../../../src/Webhooks/queue/DeliveryLogRepo.ts"
import * as RedeliveryRepo from "../../../src/Webhooks/queue/RedeliveryRepo.ts"
import type { AttemptOutcome } from "../../../src/Webhooks/transport/DeliveryClient.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  besideDispatcher,
  deliveries,
  merchant,
  newPayment,
  publish,
  rememberingClient,
  untilRecorded,
  webhooksOn
} from "../../lib/webhooks.ts"
import { a, addFailed, b, commit, minute, ok, onStore, publishMany, refused, register, second } from "../endpoints.ts"

it.scoped("a range is ordered in parts, oldest first, and what is outside stays as it is", () =>
  onStore(function* () {
    const [one, other] = [yield* register(a), yield* register(b)]
    yield* publish(yield* newPayment(), "pending", 50 * second)
    yield* addFailed(one.id, 100)
    yield* addFailed(other.id, 100)
    yield* TestClock.adjust("1 hour")
    const times = { since: 10 * second, until: 90 * second }
    const wanted = { owner: merchant, endpoint: one.id, status: "failed" as const, ...times }
    const run = (selection: LogRepo.Selection) =>
      Effect.gen(function* () {
        const parts: Array<number> = []
        let after: RedeliveryRepo.RedeliveryCursor | undefined
        do {
          const part = yield* commit((now) => RedeliveryRepo.redeliverSome(selection, after, 32, now))
          parts.push(part.ordered)
          after = part.next
        } while (after !== undefined)
        return parts
      })
    expect(yield* run(wanted)).toEqual([32, 32, 16])
    // The second time they are due already; the pending one of the event itself was never failed.
    expect(yield* run(wanted)).toEqual([0, 0, 0])
    const ordered = (yield* deliveries).filter((row) => row.redelivery === 1)
    expect(ordered.map((row) => row.sequence)).toEqual(Array.from({ length: 80 }, (_, i) => 13 + i))
    // Of the whole account: the rest of the first endpoint's, and all of the other's in this time.
    const all = { ...wanted, endpoint: undefined, since: 0 }
    expect((yield* run(all)).reduce((sum, part) => sum + part, 0)).toBe(10 + 90)
    expect(yield* run({ ...all, owner: { ...merchant, mode: "live" } })).toEqual([0])
  })
)

it.scoped("new events and retries go before a long range, and that goes out nevertheless", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const count = 60
    const begun = yield* Queue.unbounded<void>()
    const answers = yield* Queue.unbounded<AttemptOutcome>()
    let answer: Effect.Effect<AttemptOutcome> = ok
    const client = rememberingClient(() => answer)
    yield* besideDispatcher(
      Effect.gen(function* () {
        yield* register(a)
        yield* publishMany(count)
        yield* untilRecorded(count)
        answer = refused
        yield* publishMany(1)
        yield* untilRecorded(count + 1)

        answer = Effect.zipRight(Queue.offer(begun, undefined), Queue.take(answers))
        const range = { owner: merchant, endpoint: undefined, status: "delivered" as const, since: 0, until: minute }
        const ordered = yield* commit((now) => RedeliveryRepo.redeliverSome(range, undefined, 2 * count, now))
        expect(ordered).toMatchObject({ ordered: count })
        yield* Queue.take(begun)
        yield* TestClock.adjust("1 minute")
        yield* publish(yield* newPayment(), "pending", minute)
        for (let more = count + 1; more > 0; more--) {
          yield* Queue.offer(answers, { status: 200 })
          yield* Queue.take(begun)
        }
        yield* Queue.offer(answers, { status: 200 })
        yield* untilRecorded(2 * count + 3)

        const rows = yield* deliveries
        const sent = client.sent
          .slice(count + 1)
          .map(({ headers }) => rows.findIndex((row) => row.event_id === headers["webhook-id"]) + 1)
        // One is on its way when they are due.
        const [retried, fresh] = [sent.indexOf(count + 1), sent.indexOf(count + 2)]
        expect(Math.max(retried, fresh)).toBe(2)
        expect(sent.toSorted((x, y) => x - y)).toEqual(Array.from({ length: count + 2 }, (_, n) => n + 1))
        expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(["delivered"]))
      })
    ).pipe(Effect.provide(webhooksOn(path, client.layer, { concurrencyPerEndpoint: 1 })))
  })
)
