import { Clock, Data, Deferred, Duration, Effect, Schedule, Schema } from "effect"
import { type Address, encodeFunctionData, erc20Abi, type Hash, numberToHex } from "viem"
import type { ChainName } from "../Domain/Chain.ts"
import type { PaymentCurrency } from "../Domain/Currency.ts"
import { type EventKind, WebhookEvent } from "../Domain/Event.ts"
import { randomToken } from "../Domain/Ids.ts"
import { type Api, ask, follow } from "../Listen/follow.ts"
import type { Message } from "../Listen/messages.ts"
import { payer } from "./instructions.ts"
import { makeRpc } from "./Rpc.ts"

/** The event did not come: `message` says what came instead, or how long it was waited for. */
export class NotTriggered extends Data.TaggedError("NotTriggered")<{ readonly message: string }> {}

export interface TriggerOptions {
  readonly api: Api
  readonly kind: EventKind
  /** Of the sandbox: whoever asks may spend its money. */
  readonly chain: { readonly name: ChainName; readonly rpcUrl: string; readonly tokens: ReadonlyMap<string, string> }
  readonly currency: PaymentCurrency
  /** How long after its time the sandbox takes a payment for one on time. */
  readonly settleGrace: Duration.Duration
  /** Hears what is done and waited for. */
  readonly tell: (what: string) => Effect.Effect<void>
}

/** In smallest units: worth a few dollars each. */
const amounts: Readonly<Record<PaymentCurrency, bigint>> = {
  ETH: 10n ** 16n,
  USDC: 25n * 10n ** 6n,
  USDT: 25n * 10n ** 6n,
  DAI: 25n * 10n ** 18n,
  WBTC: 50_000n
}

/** The shortest time that a payment may have. */
const shortest = Duration.seconds(60)
/** For what takes no time by itself: a few blocks. */
const patience = Duration.minutes(2)
const progressEvery = Duration.seconds(10)

/** Those after which nothing more comes of itself. */
const ends: ReadonlyArray<EventKind> = ["payment.confirmed", "payment.expired", "payment.failed"]

const Created = Schema.parseJson(Schema.Struct({ id: Schema.String, address: Schema.String }))
const decodeEvent = Schema.decode(Schema.parseJson(WebhookEvent))

const create = Effect.fnUntraced(function* ({ api, chain, currency, kind }: TriggerOptions) {
  const endsByItself = kind === "payment.expired" || kind === "payment.failed"
  const body = JSON.stringify({
    merchantRef: `trigger ${randomToken()}`,
    amount: String(amounts[currency]),
    currency,
    chain: chain.name,
    ...(endsByItself ? { expiresIn: Duration.toSeconds(shortest) } : {})
  })
  const headers = { "content-type": "application/json" }
  const answer = yield* ask(api, "POST", "/v1/payments", { headers, body })
  const text = yield* Effect.tryPromise({
    try: () => answer.text(),
    catch: () => new NotTriggered({ message: `${api.url} broke off its answer` })
  }).pipe(
    Effect.timeoutFail({ duration: patience, onTimeout: () => new NotTriggered({ message: "no answer in time" }) })
  )
  return yield* Schema.decode(Created)(text)
})

const pay = Effect.fnUntraced(function* ({ chain, currency, kind }: TriggerOptions, address: string) {
  const rpc = yield* makeRpc(chain.name, chain.rpcUrl)
  const amount = kind === "payment.failed" ? amounts[currency] / 2n : amounts[currency]
  const token = chain.tokens.get(currency)
  const to = address as Address
  const call =
    token === undefined
      ? { to, value: numberToHex(amount) }
      : { to: token, data: encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [to, amount] }) }
  return yield* rpc<Hash>("eth_sendTransaction", [{ from: payer, ...call }])
})

/** Says now and then that it still waits. */
const progress = ({ kind, tell }: TriggerOptions, limit: Duration.Duration) =>
  Effect.gen(function* () {
    const startedAt = yield* Clock.currentTimeMillis
    const say = Effect.gen(function* () {
      const seconds = Math.round(((yield* Clock.currentTimeMillis) - startedAt) / 1000)
      yield* tell(`waiting for ${kind}: ${seconds} s, at most ${Math.round(Duration.toSeconds(limit))} s`)
    })
    return yield* Effect.zipRight(Effect.repeat(Effect.delay(say, progressEvery), Schedule.forever), Effect.never)
  })

const drive = Effect.fnUntraced(function* (
  options: TriggerOptions,
  came: (payment: string) => Effect.Effect<WebhookEvent, NotTriggered>
) {
  const { chain, kind, settleGrace, tell } = options
  const { address, id } = yield* create(options)
  yield* tell(`created ${id} on ${chain.name}, to ${address}`)
  const isPaid = kind !== "payment.created" && kind !== "payment.expired"
  if (isPaid) yield* tell(`paid in ${yield* pay(options, address)}`)
  const endsInTime = kind === "payment.expired" || kind === "payment.failed"
  const limit = endsInTime ? Duration.sum(Duration.sum(shortest, settleGrace), patience) : patience
  return yield* came(id).pipe(
    Effect.raceFirst(progress(options, limit)),
    Effect.timeoutFail({
      duration: limit,
      onTimeout: () =>
        new NotTriggered({
          message: `${kind} of ${id} did not come within ${Duration.format(limit)}: is ${chain.name} read? See /readyz`
        })
    })
  )
})

/** Drives a real payment of a running sandbox to an event, and gives that event as it was told. */
export const trigger = Effect.fn("Sandbox.trigger")(function* (options: TriggerOptions) {
  const { api, kind, tell } = options
  const listening = yield* Deferred.make<void>()
  const events: Array<WebhookEvent> = []
  let heard: (event: WebhookEvent) => void = () => undefined

  const each = ({ data }: Message) =>
    Effect.gen(function* () {
      yield* Deferred.succeed(listening, undefined)
      if (data === "") return
      const event = yield* Effect.orDie(decodeEvent(data))
      events.push(event)
      heard(event)
    })

  const came = (payment: string) =>
    Effect.async<WebhookEvent, NotTriggered>((resume) => {
      heard = (event) => {
        if (event.data.id !== payment) return
        if (event.event === kind) return resume(Effect.succeed(event))
        if (!ends.includes(event.event)) return
        const { failureReason } = event.data
        const why = failureReason === undefined ? "" : ` (${failureReason})`
        resume(new NotTriggered({ message: `${payment} came to ${event.event}${why}, and not to ${kind}` }))
      }
      for (const event of events) heard(event)
    })

  const work = Effect.zipRight(Deferred.await(listening), drive(options, came))
  return yield* Effect.raceFirst(
    work,
    follow(api, each, (why) => tell(`${why}; connecting again`))
  ).pipe(
    Effect.catchTag(
      "ParseError",
      (error) => new NotTriggered({ message: `not the answer of a tilld: ${error.message}` })
    )
  )
}, Effect.scoped)
