import { Clock, Data, Deferred, Duration, Effect, Queue, Schema } from "effect"
import type { Address } from "viem"
import type { PaymentCurrency } from "../Domain/Currency.ts"
import { type EventKind, WebhookEvent } from "../Domain/Event.ts"
import { randomToken } from "../Domain/Ids.ts"
import { askApi, type ListenApi } from "../Listen/askApi.ts"
import { type Follower, follow } from "../Listen/follow.ts"
import { bodyText, readBody } from "../lib/httpClient.ts"
import { smallAmounts } from "./local.ts"
import { type PayingChain, pay } from "./pay.ts"

/** The event did not arrive: `message` has the event that arrived instead, or the time limit. */
export class NotTriggered extends Data.TaggedError("NotTriggered")<{ readonly message: string }> {}

export interface TriggerOptions {
  readonly api: ListenApi
  readonly kind: EventKind
  readonly chain: PayingChain
  readonly currency: PaymentCurrency
  /** `payments.settle_grace` of the sandbox. */
  readonly settleGrace: Duration.Duration
  /** Receives progress messages. */
  readonly tell: (what: string) => Effect.Effect<void>
}

/** The shortest `expiresIn`. */
const shortest = Duration.seconds(60)
/** Time limit of everything but a payment's own time: a few blocks. */
const patience = Duration.minutes(2)
const progressEvery = Duration.seconds(10)

/** Events after which a payment has no further ones. */
const ends: ReadonlyArray<EventKind> = ["payment.confirmed", "payment.expired", "payment.failed"]

/** Whether the event comes only when the payment's time is over. */
const endsInTime = (kind: EventKind): boolean => kind === "payment.expired" || kind === "payment.failed"

const Created = Schema.parseJson(Schema.Struct({ id: Schema.String, address: Schema.String }))
const decodeEvent = Schema.decode(Schema.parseJson(WebhookEvent))

const create = Effect.fnUntraced(function* ({ api, chain, currency, kind }: TriggerOptions) {
  const body = JSON.stringify({
    merchantRef: `trigger ${randomToken()}`,
    amount: String(smallAmounts[currency]),
    currency,
    chain: chain.name,
    ...(endsInTime(kind) ? { expiresIn: Duration.toSeconds(shortest) } : {})
  })
  const headers = { "content-type": "application/json" }
  const answer = yield* askApi(api, "POST", "/v1/payments", { headers, body })
  const text = yield* readBody(answer, (body) => bodyText(body, 64 * 1024)).pipe(
    Effect.mapError(() => new NotTriggered({ message: `${api.url} broke off its answer` })),
    Effect.timeoutFail({ duration: patience, onTimeout: () => new NotTriggered({ message: "no answer in time" }) })
  )
  return yield* Schema.decode(Created)(text)
})

const payFor = ({ chain, currency, kind }: TriggerOptions, address: string) => {
  const amount = kind === "payment.failed" ? smallAmounts[currency] / 2n : smallAmounts[currency]
  return pay(chain, { currency, amount, to: address as Address })
}

/** Reports regularly that it still waits. */
const progress = ({ kind, tell }: TriggerOptions, limit: Duration.Duration) =>
  Effect.gen(function* () {
    const startedAt = yield* Clock.currentTimeMillis
    const say = Effect.gen(function* () {
      const seconds = Math.round(((yield* Clock.currentTimeMillis) - startedAt) / 1000)
      yield* tell(`waiting for ${kind}: ${seconds} s, at most ${Math.round(Duration.toSeconds(limit))} s`)
    })
    return yield* Effect.forever(Effect.delay(say, progressEvery))
  })

/** Takes events until the wanted one comes; fails at one after which it cannot come. */
const wanted = Effect.fnUntraced(function* (kind: EventKind, payment: string, events: Queue.Dequeue<WebhookEvent>) {
  while (true) {
    const event = yield* Queue.take(events)
    if (event.data.id !== payment) continue
    if (event.event === kind) return event
    if (!ends.includes(event.event)) continue
    const { failureReason } = event.data
    const why = failureReason === undefined ? "" : ` (${failureReason})`
    return yield* new NotTriggered({ message: `${payment} came to ${event.event}${why}, and not to ${kind}` })
  }
})

const drive = Effect.fnUntraced(function* (options: TriggerOptions, events: Queue.Dequeue<WebhookEvent>) {
  const { chain, kind, settleGrace, tell } = options
  const { address, id } = yield* create(options)
  yield* tell(`created ${id} on ${chain.name}, to ${address}`)
  const isPaid = kind !== "payment.created" && kind !== "payment.expired"
  if (isPaid) yield* tell(`paid in ${yield* payFor(options, address)}`)
  const limit = endsInTime(kind) ? Duration.sum(Duration.sum(shortest, settleGrace), patience) : patience
  return yield* wanted(kind, id, events).pipe(
    Effect.raceFirst(progress(options, limit)),
    Effect.timeoutFail({
      duration: limit,
      onTimeout: () =>
        new NotTriggered({
          message: `${kind} of ${id} did not come within ${Duration.format(limit)}: is ${chain.name} read? See /readyz and the log`
        })
    })
  )
})

/** Drives a real payment of a running sandbox to an event, and gives the event. Fails with `NotTriggered`. */
export const triggerEvents = Effect.fn("Sandbox.trigger")(function* (options: TriggerOptions) {
  const { api, tell } = options
  const listening = yield* Deferred.make<void>()
  const events = yield* Queue.unbounded<WebhookEvent>()
  const follower: Follower<NotTriggered> = {
    after: undefined,
    onOpen: () => Deferred.succeed(listening, undefined),
    onEvent: ({ data }) => Effect.flatMap(Effect.orDie(decodeEvent(data)), (event) => Queue.offer(events, event)),
    // A sandbox that runs responds to the first connection.
    onLost: (why) =>
      Effect.if(Deferred.isDone(listening), {
        onTrue: () => tell(`${why}; connecting again`),
        onFalse: () => new NotTriggered({ message: why })
      })
  }
  const work = Effect.zipRight(Deferred.await(listening), drive(options, events))
  return yield* Effect.raceFirst(work, follow(api, follower)).pipe(
    Effect.catchTag(
      "ParseError",
      ({ message }) => new NotTriggered({ message: `not the answer of a tilld: ${message}` })
    )
  )
}, Effect.scoped)
