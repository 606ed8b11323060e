import { describe, expect } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Layer, Option, Queue, Scope, Stream, TestClock } from "effect"
import { Keys } from "../../src/Auth.ts"
import type { Owner } from "../../src/Domain/Account.ts"
import { type ApiKey, permissions } from "../../src/Domain/ApiKey.ts"
import { type EventKind, type Position, streamStart } from "../../src/Domain/Event.ts"
import { AccountId, type EventId } from "../../src/Domain/Ids.ts"
import { EventStreams, TooManyStreams } from "../../src/Events/EventStreams.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { Housekeeping } from "../../src/Housekeeping.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, migratedDatabase, rows } from "../lib/store.ts"
import { merchant, newPayment, publish, stubClient, untilStored, webhooksOn } from "../lib/webhooks.ts"

/** On a new store; no webhook is registered, and so none is sent. */
const test = scopedTest(
  Layer.unwrapScoped(
    Effect.map(migratedDatabase, (path) => {
      const client = stubClient(() => Effect.succeed({ status: 200 }))
      const streams = Layer.merge(EventStreams.layer, Housekeeping.layer)
      return streams.pipe(Layer.provideMerge(Keys.layer), Layer.provideMerge(webhooksOn(path, client)))
    })
  )
)

const other: Owner = { account: AccountId.make("other"), mode: "test" }

const addOther = execute("INSERT INTO accounts (id, name, created_at) VALUES (?, 'Other', 0)", [other.account])

const newKey = (owner: Owner = merchant, expiresIn?: Duration.Duration) =>
  Effect.flatMap(Keys, (keys) => keys.create({ ...owner, name: "test", permissions, expiresIn }))

const openWith = (key: ApiKey, position?: Position, kinds?: ReadonlyArray<EventKind>) =>
  Effect.gen(function* () {
    const stream = yield* (yield* EventStreams).open(key, position, kinds)
    const pieces = yield* Queue.unbounded<string>()
    const fiber = yield* Effect.forkScoped(Stream.runForEach(stream, (piece) => Queue.offer(pieces, piece)))
    return { next: Queue.take(pieces), waiting: Queue.size(pieces), ended: Fiber.join(fiber) }
  })

const open = (owner?: Owner, position?: Position) =>
  Effect.flatMap(newKey(owner), ({ record }) => openWith(record, position))

const idsIn = (piece: string): ReadonlyArray<string> => Array.from(piece.matchAll(/^id: (.*)$/gm), ([, id = ""]) => id)

const storedIds = Effect.map(rows<{ id: EventId }>("SELECT id FROM events ORDER BY sequence"), (all) =>
  all.map(({ id }) => id)
)

/** Announces a payment as this owner's; returns the id of its event. */
const happen = (at = 0, owner: Owner = merchant, webhookUrl?: string) =>
  Effect.gen(function* () {
    const payment = { ...(yield* newPayment(webhookUrl)), ...owner }
    yield* publish(payment, "pending", at)
    return (yield* storedIds).at(-1) ?? expect.fail("no event")
  })

const heartbeat = ":\n\n"
const day = Duration.toMillis("1 day")

test("half an emoji in a stored event is sent as U+FFFD", function* () {
  yield* happen()
  yield* execute(String.raw`UPDATE events SET body = replace(body, 'ünïcödé 💶', 'card \ud83c')`)
  const stream = yield* open(merchant, streamStart)
  yield* stream.next
  expect(yield* stream.next).toContain('"note":"card \ufffd"')
})

test("a keep-alive comment comes 15 seconds after the last chunk", function* () {
  const { next, waiting } = yield* open()
  expect(yield* next).toBe("id: start\n\n")
  yield* TestClock.adjust("14999 millis")
  expect(yield* waiting).toBe(0)
  yield* TestClock.adjust("1 millis")
  expect(yield* next).toBe(heartbeat)
  yield* TestClock.adjust("10 seconds")
  const id = yield* happen()
  expect(idsIn(yield* next)).toEqual([id])
  yield* TestClock.adjust("14999 millis")
  expect(yield* waiting).toBe(0)
  yield* TestClock.adjust("1 millis")
  expect(yield* next).toBe(heartbeat)
})

test("a stream begins now, at the start or after an event, in chunks of at most 32 events", function* () {
  const ids = yield* Effect.replicateEffect(happen(), 70)
  const all = yield* open(merchant, streamStart)
  expect(yield* all.next).toBe("id: start\n\n")
  expect([idsIn(yield* all.next), idsIn(yield* all.next), idsIn(yield* all.next)]).toEqual([
    ids.slice(0, 32),
    ids.slice(32, 64),
    ids.slice(64)
  ])
  const some = yield* open(merchant, ids[66])
  expect(idsIn(yield* some.next)).toEqual([ids[66]])
  expect(idsIn(yield* some.next)).toEqual(ids.slice(67))
  const now = yield* open()
  expect(idsIn(yield* now.next)).toEqual([ids[69]])
  const id = yield* happen()
  for (const { next } of [all, some, now]) expect(idsIn(yield* next)).toEqual([id])
})

test("a listener is not woken before the event is committed, however long the writer's group takes", function* () {
  const outbox = yield* Outbox
  const payment = yield* newPayment()
  const heard = yield* Effect.fork(yield* outbox.listen(payment.id))
  const before = yield* inTransaction(
    Effect.gen(function* () {
      yield* outbox.publish(payment, 0)
      for (let i = 0; i < 10; i++) yield* eventLoopTurn
      return yield* Fiber.poll(heard)
    })
  )
  expect(Option.isNone(before)).toBe(true)
  yield* Fiber.join(heard)
})

test("a stream has no events of another account or mode, and cannot continue after them", function* () {
  yield* addOther
  const live: Owner = { ...merchant, mode: "live" }
  const streams = yield* Effect.forEach([merchant, live, other], (owner) => open(owner), { concurrency: 1 })
  for (const { next } of streams) expect(yield* next).toBe("id: start\n\n")
  const ids = yield* Effect.forEach([other, live, merchant], (owner) => happen(0, owner), { concurrency: 1 })
  const heard = yield* Effect.forEach(streams, ({ next }) => Effect.map(next, idsIn), { concurrency: 1 })
  expect(heard).toEqual([[ids[2]], [ids[1]], [ids[0]]])
  const astray = yield* open(other, ids[2])
  expect(yield* astray.next).toBe(`: ${ids[2]} is not kept any more: from the oldest event that is\nid: start\n\n`)
  expect(idsIn(yield* astray.next)).toEqual([ids[0]])
})

test("a stream has only the kinds that it names; without a name, those that report a new status", function* () {
  const { record } = yield* newKey()
  const plain = yield* openWith(record)
  const named = yield* openWith(record, undefined, ["payment.updated"])
  for (const { next } of [plain, named]) expect(yield* next).toBe("id: start\n\n")
  const payment = yield* newPayment()
  const published = (kind: "payment.created" | "payment.updated") =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      yield* inTransaction(outbox.publish({ ...payment, updates: 1 }, 0, kind))
      return (yield* storedIds).at(-1)
    })
  const created = yield* published("payment.created")
  expect(idsIn(yield* plain.next)).toEqual([created])
  // A keep-alive, since there is an event of a kind that it does not name.
  expect(yield* named.next).toBe(heartbeat)
  const updated = yield* published("payment.updated")
  expect(yield* plain.next).toBe(heartbeat)
  expect(idsIn(yield* named.next)).toEqual([updated])
})

describe("a position older than the retention of events", () => {
  const cleaned = (left: number) =>
    Effect.gen(function* () {
      const { run } = yield* Housekeeping
      yield* Effect.raceFirst(untilStored(Effect.map(storedIds, (ids) => ids.length === left)), run)
    })

  test("whose event is deleted: the stream continues with the oldest kept event, and says so", function* () {
    const first = yield* happen(0)
    yield* happen(0)
    const kept = [yield* happen(99 * day), yield* happen(99 * day)]
    yield* TestClock.setTime(100 * day)
    yield* cleaned(2)
    const { next } = yield* open(merchant, first)
    expect(yield* next).toBe(`: ${first} is not kept any more: from the oldest event that is\nid: start\n\n`)
    expect(idsIn(yield* next)).toEqual(kept)
  })

  test("is not accepted where its own event is still kept: others after it are deleted", function* () {
    // Its delivery waits for an endpoint that has been down ever since.
    const first = yield* happen(0, merchant, "https://shop.example/down")
    yield* happen(0)
    const last = yield* happen(99 * day)
    yield* TestClock.setTime(100 * day)
    yield* cleaned(2)
    const { next } = yield* open(merchant, first)
    expect(yield* next).toContain("is not kept any more")
    expect(idsIn(yield* next)).toEqual([first, last])
  })

  test("is accepted where it is the owner's newest event, which is always kept", function* () {
    yield* addOther
    // The earlier one's delivery still waits: the newest is not the only one left.
    const ahead = yield* happen(0, merchant, "https://shop.example/down")
    const newest = yield* happen(0)
    yield* happen(0, other)
    const last = yield* happen(99 * day, other)
    yield* TestClock.setTime(100 * day)
    yield* cleaned(3)
    expect(yield* storedIds).toEqual([ahead, newest, last])
    const { next } = yield* open(merchant, newest)
    expect(yield* next).toBe(`id: ${newest}\n\n`)
    const id = yield* happen(100 * day)
    expect(idsIn(yield* next)).toEqual([id])
    const behind = yield* open(merchant, ahead)
    expect(yield* behind.next).toContain("is not kept any more")
  })
})

describe("a stream ends", () => {
  test("with a change of the addresses that its key may be used from", function* () {
    const { record } = yield* newKey()
    const stream = yield* openWith(record)
    yield* stream.next
    const keys = yield* Keys
    yield* keys.change(record.id, { perMinute: 5 })
    yield* happen()
    yield* stream.next
    yield* keys.change(record.id, { ips: ["192.0.2.1/32"] })
    yield* happen()
    yield* stream.ended
    expect(yield* stream.waiting).toBe(0)
  })

  test("with the time of its key, at the next sign of life", function* () {
    const { record } = yield* newKey(merchant, Duration.seconds(20))
    const stream = yield* openWith(record)
    yield* stream.next
    yield* TestClock.adjust("15 seconds")
    expect(yield* stream.next).toBe(heartbeat)
    yield* TestClock.adjust("15 seconds")
    expect(yield* stream.next).toBe(heartbeat)
    yield* stream.ended
  })
})

test("an account has at most 20 streams, in both modes together, and one more when one has ended", function* () {
  yield* addOther
  const scope = yield* Scope.make()
  yield* Scope.extend(open({ ...merchant, mode: "live" }), scope)
  const streams = yield* Effect.replicateEffect(open(), 19)
  for (const { next } of streams) yield* next
  expect(yield* Effect.flip(open())).toEqual(new TooManyStreams({ limit: 20 }))
  yield* open(other)
  yield* Scope.close(scope, Exit.void)
  yield* (yield* open()).next
  expect(yield* Effect.flip(open())).toBeInstanceOf(TooManyStreams)
})
