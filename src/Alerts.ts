/**
 * Tells the operator what is wrong: one signed message to `alerts.url` when a condition has held for its patience, and one
 * when it is over. Messages are retried as webhooks are, and outlive a restart. While the store takes no writes the state
 * is kept in memory, so that the alert about the store arrives too. `main` runs the worker.
 */

import { Clock, Context, Effect, Either, Layer, type Redacted, Schema } from "effect"
import { type AlertMessage, AlertState, attempted, dueOf, look, nothingSeen } from "./Alerts/alertState.ts"
import { makeConditions } from "./Alerts/conditions.ts"
import { makeHttpClient } from "./lib/httpClient.ts"
import { Secrets } from "./Secrets.ts"
import { Settings, type SettingsShape } from "./Settings.ts"
import { type Db, execute, oneValue, Reader, Writer } from "./Sql.ts"
import { Workers } from "./Telemetry/Workers.ts"
import { succeeded } from "./Webhooks/queue/retryPolicy.ts"
import { signatureHeaders, signingKey } from "./Webhooks/signature.ts"

/** From the start of an attempt to the status. */
const deadline = "10 seconds"

/** Of a response, whose body is not looked at. */
const maxBytes = 64 * 1024

/** How an attempt ended: the receiver's status, or why there was none. */
export interface Attempt {
  readonly status?: number
  readonly error?: string
}

/**
 * Makes the function that sends a message to `alerts.url`. The operator has chosen this address: unlike a merchant's it may
 * be on this machine or in its network. Redirects are not followed. Never fails. Lives as long as the scope.
 */
export const makeSendAlert = (
  { alerts, webhooks: { extraCaFile } }: Pick<SettingsShape, "alerts" | "webhooks">,
  secret: Redacted.Redacted<string>
) =>
  Effect.map(makeHttpClient("4 seconds", extraCaFile), (client) => {
    const key = signingKey(secret)
    return Effect.fn("Alerts.send")(function* ({ body, id }: Pick<AlertMessage, "body" | "id">) {
      const bytes = Buffer.from(body)
      const signed = signatureHeaders(key, id, bytes, yield* Clock.currentTimeMillis)
      const headers = { ...signed, "content-type": "application/json" }
      return yield* client.send({ url: new URL(alerts.url), method: "POST", body: bytes, headers, maxBytes }).pipe(
        Effect.map((response): Attempt => ({ status: response.resume().statusCode ?? 0 })),
        Effect.mapError(({ code, message }): Attempt => ({ error: message || code })),
        Effect.timeoutFail({ duration: deadline, onTimeout: (): Attempt => ({ error: `no answer in ${deadline}` }) }),
        Effect.merge
      )
    })
  })

const interval = "15 seconds"
/** Messages that are sent at once. */
const atOnce = 4
/** Most messages of one round, so that its looks go on beside a receiver that hangs. */
const mostOfRound = 8

/** The secret that signs messages to the operator. */
export const alertSecret = Effect.map(Secrets, ({ signing }) => signing("alerts"))

export class Alerts extends Context.Tag("tilld/Alerts")<
  Alerts,
  {
    /** The worker. Without `alerts.url` it does nothing. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.scoped(
    Alerts,
    Effect.gen(function* () {
      const settings = yield* Settings
      if (settings.alerts.url === "") return { run: Effect.never }
      const writer = yield* Writer
      const reader = yield* Reader
      const conditions = yield* makeConditions
      const send = yield* makeSendAlert(settings, yield* alertSecret)
      const heartbeat = (yield* Workers).worker("alerts", "1 minute")

      let stored = ""

      const deliver = Effect.fnUntraced(function* (message: AlertMessage) {
        const { error, status } = yield* send(message)
        if (!succeeded(status)) {
          yield* Effect.logWarning("an alert did not arrive at alerts.url").pipe(
            Effect.annotateLogs({ alert: message.id, reason: error ?? `it answered ${status}` })
          )
        }
        return { id: message.id, status, endedAt: yield* Clock.currentTimeMillis }
      })

      /** Stores what has changed. A later round stores what this one could not. */
      const save = Effect.fnUntraced(function* (state: AlertState) {
        const text = encodedAlerts(state)
        if (text === stored) return
        yield* Effect.ignore(
          Effect.map(writer.write(writeAlerts(text)), () => {
            stored = text
          })
        )
      })

      const round = Effect.fnUntraced(function* (before: AlertState) {
        const now = yield* Clock.currentTimeMillis
        const seen = look(before, yield* conditions.look, now)
        // Before it is sent: the same message comes again after a crash, and no second one.
        yield* save(seen)
        const sent = yield* Effect.forEach(dueOf(seen, now).slice(0, mostOfRound), deliver, { concurrency: atOnce })
        const after = sent.reduce((state, { endedAt, id, status }) => attempted(state, id, status, endedAt), seen)
        yield* save(after)
        return after
      })

      return {
        run: Effect.orDie(readAlerts(reader)).pipe(
          Effect.flatMap((state) =>
            Effect.iterate(state, {
              while: (_: AlertState) => true,
              body: (before) => Effect.zipLeft(heartbeat(round(before)), Effect.sleep(interval))
            })
          ),
          Effect.zipRight(Effect.never),
          Effect.annotateLogs({ service: "alerts" })
        )
      }
    })
  )
}

const Stored = Schema.parseJson(AlertState)
const decode = Schema.decodeUnknownEither(Stored)
const encode = Schema.encodeSync(Stored)

/** The stored state: nothing where there is none, or where another version has written it. */
export const readAlerts = (db: Db) =>
  Effect.map(
    oneValue<string>(db, "SELECT state FROM alerts WHERE id = 1"),
    (state): AlertState => Either.getOrElse(decode(state), () => nothingSeen)
  )

/** What is stored. After a restart, conditions that are not open yet start their patience again: none was observed. */
const encodedAlerts = ({ seen, unsent }: AlertState): string =>
  encode({ seen: seen.filter(({ openedAt }) => openedAt !== undefined), unsent })

const writeAlerts = (state: string) => execute("INSERT OR REPLACE INTO alerts (id, state) VALUES (1, ?)", [state])
