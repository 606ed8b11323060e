import { Effect, Redacted } from "effect"
import { EventKind } from "../../src/Domain/Event.ts"
import type { AttemptOutcome } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { merchant, rememberingClient, stubClient, webhooksOn } from "../lib/webhooks.ts"

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

export const a = "https://a.example/hook"
export const b = "https://b.example/hook"
export const c = "https://c.example/hook"

export const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
export const allEvents = EventKind.literals

/** An endpoint of the merchant's, for every event unless the test says otherwise. */
export const register = (url: string, events: ReadonlyArray<EventKind> = allEvents, owner = merchant) =>
  Effect.flatMap(Webhooks, (webhooks) => webhooks.create(owner, { url, events, secret: Redacted.make(secret) }))

export const ok = Effect.succeed<AttemptOutcome>({ status: 200 })
export const refused = Effect.succeed<AttemptOutcome>({ status: 500, bodyStart: "no" })
export const hangs = Effect.as(Effect.sleep("30 seconds"), { error: "timeout" })

/** A client whose answers the test decides, by URL. */
export const scripted = (answers: Readonly<Record<string, Effect.Effect<AttemptOutcome>>>) => {
  const { layer, sent } = rememberingClient(({ url }) => answers[url] ?? Effect.succeed({ status: 204 }))
  return { layer, sent, to: (url: string) => sent.filter((request) => request.url === url).length }
}

const names = { "shop.example": ["93.184.216.34"], "inside.example": ["10.0.0.7"] }

/** The webhooks of the store at `path`; nothing is sent. */
export const sendingNothing = (path: string) =>
  webhooksOn(
    path,
    stubClient(() => Effect.never),
    {},
    names
  )

/** A test on a store of its own; nothing is sent. */
export const onStore = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.flatMap(temporaryDatabase, (path) => Effect.provide(test, sendingNothing(path)))
