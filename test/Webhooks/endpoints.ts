import { it } from "@effect/vitest"
import { Clock, Effect, Layer, Queue, Redacted, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"
import { type EventKind, StatusEventKind } from "../../src/Domain/Event.ts"
import type { EndpointId } from "../../src/Domain/Ids.ts"
import { Reader, type StoreUnavailable, Tx } from "../../src/Sql.ts"
import { DeliveryBell } from "../../src/Webhooks/queue/DeliveryBell.ts"
import * as RedeliveryRepo from "../../src/Webhooks/queue/redelivery.ts"
import type { AttemptOutcome } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { type EndpointChange, Webhooks } from "../../src/Webhooks.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, temporaryDatabase, type Yielded } from "../lib/store.ts"
import {
  dispatching,
  explained,
  merchant,
  newPayment,
  publish,
  rememberingClient,
  stubClient,
  webhooksOn
} from "../lib/webhooks.ts"

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

export const a = "https://a.example/hook"
export const b = "https://b.example/hook"
export const c = "https://c.example/hook"

export const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
export const allEvents = StatusEventKind.literals

/** An endpoint of the merchant, for every event unless the test says otherwise. */
export const register = (url: string, events: ReadonlyArray<EventKind> = allEvents, owner = merchant) =>
  Effect.flatMap(Webhooks, (webhooks) => webhooks.create(owner, { url, events, secret: Redacted.make(secret) }))

/** Deletes an endpoint, of the merchant unless another owner is named; gives how many deliveries that cancelled. */
export const removeEndpoint = (id: string, owner = merchant) =>
  Effect.flatMap(Webhooks, (webhooks) => webhooks.remove(owner, id))

export const changeEndpoint = (id: string, what: EndpointChange, owner = merchant) =>
  Effect.flatMap(Webhooks, (webhooks) => webhooks.change(owner, id, what))

export const ok = Effect.succeed<AttemptOutcome>({ status: 200 })
export const refused = Effect.succeed<AttemptOutcome>({ status: 500, bodyStart: "no" })
export const hangs = Effect.as(Effect.sleep("30 seconds"), { error: "timeout" })

/** A client whose responses the test decides, by URL, from now on and until it changes `answers`. */
export const scripted = (from: Readonly<Record<string, Effect.Effect<AttemptOutcome>>>) => {
  const answers = { ...from }
  const begun = Effect.runSync(Queue.unbounded<void>())
  const { layer, sent } = rememberingClient(({ url }) => {
    begun.unsafeOffer(undefined)
    return answers[url] ?? Effect.succeed({ status: 204 })
  })
  const to = (...urls: ReadonlyArray<string>) => sent.filter(({ url }) => urls.includes(url)).length
  /** Waits until so many attempts to these have begun. */
  const until = (count: number, ...urls: ReadonlyArray<string>) =>
    Effect.repeat(Queue.take(begun), { until: () => to(...urls) >= count })
  return { layer, sent, answers, to, until }
}

/** The webhooks of the store at `path`; nothing is sent. */
export const sendingNothing = (path: string) =>
  webhooksOn(
    path,
    stubClient(() => Effect.never)
  )

/** What is done on a new store; nothing is sent. */
export const onStore = <Eff extends Yielded, A>(test: () => Generator<Eff, A, never>) =>
  Effect.flatMap(temporaryDatabase, (path) => Effect.provide(Effect.gen(test), sendingNothing(path)))

/** A test on a new store; nothing is sent. */
export const storeTest = scopedTest(Layer.unwrapScoped(Effect.map(temporaryDatabase, sendingNothing)))

type Sending = Layer.Layer.Success<ReturnType<typeof sendingNothing>> | Scope.Scope

/** A test beside a dispatcher on a new store, whose receivers answer so, by URL. */
export const sendingTest = (
  title: string,
  answers: Parameters<typeof scripted>[0],
  test: (
    client: ReturnType<typeof scripted>
  ) => Generator<YieldWrap<Effect.Effect<unknown, unknown, Sending>>, unknown, never>
) =>
  it.scoped(title, () => {
    const client = scripted(answers)
    return dispatching(client, () => test(client))
  })

/** The steps by which SQLite carries out the queries of `db` and of commands that are `watched`. */
export const watchedStore = Effect.map(Reader, (reader) => {
  const steps: Array<string> = []
  const watched = <A, E>(command: Effect.Effect<A, E, Tx>) =>
    Effect.flatMap(Tx, (tx) => Effect.provideService(command, Tx, { ...tx, ...explained(tx, reader, steps) }))
  return { db: explained(reader, reader, steps), watched, steps }
})

/** Events of new payments with this webhookUrl. */
export const publishMany = (count: number, webhookUrl?: string, owner = merchant) =>
  Effect.replicateEffect(
    Effect.flatMap(newPayment(webhookUrl, owner), (payment) => publish(payment, "pending")),
    count,
    { discard: true }
  )

/** Commits an order of the operator's, and wakes the dispatcher. */
export const commit = <A>(order: (now: number) => Effect.Effect<A, StoreUnavailable, Tx>) =>
  Effect.gen(function* () {
    const bell = yield* DeliveryBell
    const now = yield* Clock.currentTimeMillis
    return yield* inTransaction(Effect.zipLeft(order(now), bell.ring))
  })

export const idOf = (sequence: number) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const row = yield* reader.get<{ id: string }>("SELECT id FROM deliveries WHERE sequence = ?", [sequence])
    return row?.id ?? ""
  })

export const redeliver = (sequence: number) =>
  Effect.flatMap(idOf(sequence), (id) =>
    Effect.map(
      commit((now) => RedeliveryRepo.orderAgain(id, now)),
      (ordered) => ordered?.result
    )
  )

/** Failed deliveries to `endpoint`, made one a second, none of them due. */
export const addFailed = (endpoint: EndpointId, count: number) =>
  execute(
    `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
     INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
       attempts, created_at, done_at)
     SELECT 'dlv_' || i, event_id, payment_id, account_id, mode, ?, 0, ?, url, 'failed', 6, i * 1000, 0
     FROM (SELECT * FROM deliveries WHERE sequence = 1), n`,
    [count, endpoint, endpoint]
  )
