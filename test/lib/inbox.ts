import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { expect } from "@effect/vitest"
import { Effect, Queue } from "effect"
import type { EventKind, WebhookEvent } from "../../src/Domain/Event.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { type Received, type Receiver, type ReceiverOptions, startReceiver } from "../../src/Sandbox/Receiver.ts"
import { temporaryFolder } from "./store.ts"

/** A webhook that arrived. */
export interface Delivered {
  readonly event: WebhookEvent
  readonly request: Received
}

/** A receiver that sorts what arrives by path and payment. */
export interface Inbox extends Omit<Receiver, "take"> {
  /** For `webhooks.extra_ca_file`. */
  readonly caFile: string
  /** The next webhook of a payment at a path, also one that arrived before. */
  readonly next: (path: string, payment: Pick<PaymentObject, "id">) => Effect.Effect<Delivered>
  /** The next webhooks of a payment that did not arrive before, as a receiver counts them. They must be of these kinds. */
  readonly take: (
    path: string,
    payment: Pick<PaymentObject, "id">,
    ...kinds: ReadonlyArray<EventKind>
  ) => Effect.Effect<ReadonlyArray<Delivered>>
}

export const makeInbox = Effect.fn("makeInbox")(function* (options: Omit<ReceiverOptions, "caFile"> = {}) {
  const caFile = join(yield* temporaryFolder, "ca.pem")
  const receiver = yield* startReceiver({ ...options, caFile }).pipe(Effect.provide(NodeFileSystem.layer))
  const queues = new Map<string, Queue.Queue<Delivered>>()
  const queueOf = (path: string, id: string) =>
    Effect.gen(function* () {
      const queue = queues.get(path + id) ?? (yield* Queue.unbounded<Delivered>())
      queues.set(path + id, queue)
      return queue
    })

  yield* Effect.gen(function* () {
    const request = yield* receiver.take
    const event = JSON.parse(request.body.toString("utf8")) as WebhookEvent
    // A test send: there is no payment that it could be sorted by.
    if (event.data === undefined) return
    const queue = yield* queueOf(request.path, event.data.id)
    yield* queue.offer({ request, event })
  }).pipe(Effect.forever, Effect.forkScoped)

  const next: Inbox["next"] = (path, { id }) => Effect.flatMap(queueOf(path, id), (queue) => queue.take)
  const known = new Set<string>()
  const nextNew: Inbox["next"] = (path, payment) =>
    Effect.gen(function* () {
      while (true) {
        const delivered = yield* next(path, payment)
        const isNew = !known.has(path + delivered.event.id)
        known.add(path + delivered.event.id)
        if (isNew) return delivered
      }
    })
  const take: Inbox["take"] = (path, payment, ...kinds) =>
    Effect.map(Effect.replicateEffect(nextNew(path, payment), kinds.length), (taken) => {
      expect(taken.map(({ event }) => event.event)).toEqual(kinds)
      return taken
    })
  const inbox: Inbox = { ...receiver, caFile, next, take }
  return inbox
})
