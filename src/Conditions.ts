/**
 * What is wrong now, judged once every 15 seconds by the daemon, and told everywhere: a line of the log and of the audit trail
 * when a condition begins and when it ends, metrics, `/readyz`, the portal, `tilld status` and `tilld doctor`; and one signed
 * message to `alerts.url`, which is retried as a webhook is. All outlive a restart. While the store takes no writes the state is
 * kept in memory, so that the alert about the store arrives too. `main` runs the worker.
 */
import { Clock, Effect, Either, Layer, Schema } from "effect"
import { AlertMessage, alertSecret, attempted, dueOf, makeSendAlert, queued } from "./Conditions/alerts.ts"
import { noteConfiguration } from "./Conditions/configuration.ts"
import { makeFiles } from "./Conditions/files.ts"
import { makeJudge } from "./Conditions/judge.ts"
import { makePublicUrl } from "./Conditions/publicUrl.ts"
import {
  byRank,
  type Condition,
  Conditions,
  conditionOf,
  HeldCondition,
  keyOf,
  type Look,
  look
} from "./Conditions/standing.ts"
import { iso } from "./lib/moment.ts"
import { quantityText } from "./lib/quantities.ts"
import { noteOfDaemon } from "./Operations/auditLog.ts"
import { Settings } from "./Settings.ts"
import { type Db, oneValue, Reader, replaceRow, Writer } from "./Sql.ts"
import { Workers } from "./Telemetry/Workers.ts"
import { succeeded } from "./Webhooks/queue/retryPolicy.ts"

const interval = "15 seconds"
/** Most messages of one round, so that its looks go on beside a receiver that hangs. */
const mostOfRound = 4
/** Most changes that wait for a store that takes no writes. */
const mostUnnoted = 200

const State = Schema.Struct({
  seen: Schema.Array(HeldCondition),
  unsent: Schema.Array(AlertMessage),
  /** The `server.public_url` at which something has answered. */
  answered: Schema.optional(Schema.String)
})
type State = typeof State.Type

const tell = (what: "begins" | "is over", one: HeldCondition) =>
  (what === "is over" ? Effect.logInfo : one.severity === "page" ? Effect.logError : Effect.logWarning)(
    `a condition ${what}`
  ).pipe(
    Effect.annotateLogs({
      condition: keyOf(one),
      severity: one.severity,
      reason: `${one.summary}. Remedy: ${one.remedy}`
    })
  )

/** A message has been refused twice. It is told of everywhere but there. */
const ofReceiver = (unsent: ReadonlyArray<AlertMessage>): ReadonlyArray<Condition> => {
  if (unsent.every(({ attempts }) => attempts < 2)) return []
  const next = iso(Math.min(...unsent.map(({ nextAt }) => nextAt)))
  const summary = `alerts.url has not taken ${quantityText(unsent.length, "message")}, and gets the next one at ${next}`
  const remedy = "tilld alerts test says what it answers; each is tried six times within two days"
  return [conditionOf("alerts_not_taken", "", summary, remedy)]
}

export const conditionsLayer = Layer.scoped(
  Conditions,
  Effect.gen(function* () {
    const settings = yield* Settings
    const writer = yield* Writer
    const reader = yield* Reader
    yield* noteConfiguration
    const publicUrl = makePublicUrl(settings)
    const files = makeFiles(settings.database.path)
    const judge = yield* makeJudge(() => [...publicUrl.conditions(), ...files.conditions()])
    const isTold = settings.alerts.url !== ""
    const send = isTold ? yield* makeSendAlert(settings, yield* alertSecret) : undefined
    const heartbeat = (yield* Workers).worker("conditions", "1 minute")

    let state: State = { seen: [], unsent: [] }
    const found = Effect.map(judge.look, (all) => [...all, ...ofReceiver(state.unsent)])
    let stored = ""
    let unnoted: ReadonlyArray<readonly [act: string, one: HeldCondition]> = []

    /** Stores what has changed. A later round stores what this one could not. */
    const save = Effect.suspend(() => {
      const text = encoded(state)
      if (text === stored) return Effect.void
      const notes = unnoted
      return Effect.gen(function* () {
        yield* replaceRow("alerts", ["id"], { id: 1, state: text })
        for (const [act, one] of notes) {
          yield* noteOfDaemon({
            act,
            detail: { condition: keyOf(one), severity: one.severity, summary: one.summary }
          })
        }
      }).pipe(
        writer.write,
        Effect.zipRight(
          Effect.sync(() => {
            stored = text
            unnoted = unnoted.slice(notes.length)
          })
        ),
        Effect.ignore
      )
    })

    const note = ({ began, ended }: Look) => {
      const changes = [
        ...began.map((one) => ["condition begins", one] as const),
        ...ended.map((one) => ["condition is over", one] as const)
      ]
      // A merchant's receiver that comes and goes fills no log that is kept for ever.
      const kept = changes.filter(([, one]) => one.severity !== "note" && one.kind !== "endpoint_receives_nothing")
      unnoted = [...unnoted, ...kept].slice(-mostUnnoted)
    }

    const deliver = Effect.fnUntraced(function* (message: AlertMessage, to: NonNullable<typeof send>) {
      const { error, status } = yield* to(message)
      if (!succeeded(status)) {
        yield* Effect.logWarning("an alert did not arrive at alerts.url").pipe(
          Effect.annotateLogs({ alert: message.id, reason: error ?? `it answered ${status}` })
        )
      }
      return { id: message.id, status, endedAt: yield* Clock.currentTimeMillis }
    })

    const round = Effect.gen(function* () {
      const conditions = yield* found
      const now = yield* Clock.currentTimeMillis
      const seen = look(state.seen, conditions, now)
      state = { seen: seen.seen, unsent: isTold ? queued(state.unsent, seen, now) : [], answered: publicUrl.answered() }
      note(seen)
      for (const one of seen.began) yield* tell("begins", one)
      for (const one of seen.ended) yield* tell("is over", one)
      // Before it is sent: the same message comes again after a crash, and no second one.
      yield* save
      if (send === undefined) return
      const due = dueOf(state.unsent, now).slice(0, mostOfRound)
      const sent = yield* Effect.forEach(due, (message) => deliver(message, send), { concurrency: mostOfRound })
      const unsent = sent.reduce((left, { endedAt, id, status }) => attempted(left, id, status, endedAt), state.unsent)
      state = { ...state, unsent }
      yield* save
    })

    const rounds = Effect.gen(function* () {
      state = yield* Effect.orDie(readState(reader))
      stored = encoded(state)
      publicUrl.remember(state.answered)
      return yield* Effect.forever(Effect.zipLeft(heartbeat(round), Effect.sleep(interval)))
    }).pipe(Effect.annotateLogs({ service: "conditions" }))
    let latest: { readonly at: number; readonly conditions: ReadonlyArray<Condition> } | undefined
    const oneLook = yield* Effect.makeSemaphore(1)
    /** A second old at most: however many ask at once, one of them looks, and where it is interrupted the next one does. */
    const current = Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis
      if (latest === undefined || Math.abs(at - latest.at) >= 1000) latest = { at, conditions: yield* found }
      return latest.conditions
    }).pipe(oneLook.withPermits(1))
    return {
      now: Effect.zipWith(current, Clock.currentTimeMillis, (conditions, now) =>
        look(state.seen, conditions, now)
          .seen.filter(({ goneSince }) => goneSince === undefined)
          .toSorted(byRank)
      ),
      run: Effect.zipRight(
        Effect.all([rounds, publicUrl.run, files.run], { concurrency: 3, discard: true }),
        Effect.never
      )
    }
  })
)

const Stored = Schema.parseJson(State)
const decode = Schema.decodeUnknownEither(Stored)
const encode = Schema.encodeSync(Stored)

/** The stored state: nothing where there is none, or where another version has written it. */
export const readState = (db: Db) =>
  Effect.map(
    oneValue<string>(db, "SELECT state FROM alerts WHERE id = 1"),
    (state): State => Either.getOrElse(decode(state), () => ({ seen: [], unsent: [] }))
  )

/** What is stored. After a restart, conditions that are not open yet start their patience again: none was observed. */
const encoded = ({ seen, ...others }: State): string =>
  encode({ seen: seen.filter(({ openedAt }) => openedAt !== undefined), ...others })
