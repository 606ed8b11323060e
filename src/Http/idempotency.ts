import { Clock, Context, Duration, Effect, Layer, Predicate, Schedule } from "effect"
import { ApiError, invalid } from "../Domain/ApiError.ts"
import type { Owner } from "../Domain/Owner.ts"
import { Secrets } from "../Secrets.ts"
import { Reader, type StoreUnavailable, type Tx, Writer } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import * as Repo from "./IdempotencyRepo.ts"

/** How long a response is kept. */
const life = Duration.toMillis("24 hours")
/** How often older ones are forgotten, and how many in one commit. */
const forgetInterval = "10 minutes"
const forgottenAtOnce = 500

/** A response that can be given again. */
export interface Replay {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** JSON. */
  readonly text: string
}

/** Keeps a response in the transaction that makes what it tells of. */
export type Remember = (response: Replay) => Effect.Effect<void, StoreUnavailable, Tx>

const form = /^[\x20-\x7e]{1,255}$/

/** The same for two bodies that mean the same: members in the order of their names, no white space. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (!Predicate.isRecord(value)) return JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`
}

const badKey = invalid([{ path: "Idempotency-Key", message: "must be 1 to 255 printable ASCII characters" }])

const inUse = new ApiError({
  code: "IDEMPOTENCY_KEY_IN_USE",
  message: "A request with this Idempotency-Key is being worked on: ask again in a moment.",
  headers: { "retry-after": "1" }
})

const reused = new ApiError({
  code: "IDEMPOTENCY_KEY_REUSED",
  message: "This Idempotency-Key was used with another body: use a new key for a new request."
})

/** Answers a repeated request as the first one was answered, without doing it twice. */
export class Idempotency extends Context.Tag("tilld/Http/Idempotency")<
  Idempotency,
  {
    /**
     * Works on a request with an `Idempotency-Key`, unless it was answered in the last 24 hours: then that answer is
     * given. Only what `work` remembers is kept: refusals can be tried again with the same key.
     */
    readonly once: <E>(
      owner: Owner,
      route: string,
      key: string,
      payload: unknown,
      work: (remember: Remember) => Effect.Effect<Replay, E>
    ) => Effect.Effect<Replay, E | ApiError | StoreUnavailable>
    /** The worker that forgets. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const secrets = yield* Secrets
      const reader = yield* Reader
      const writer = yield* Writer
      const alive = (yield* Workers).worker("idempotency", forgetInterval)
      // One process serves, so that what is worked on is known here.
      const working = new Set<string>()

      const forget = Effect.gen(function* () {
        const until = (yield* Clock.currentTimeMillis) - life
        yield* Effect.repeat(writer.write(Repo.forget(until, forgottenAtOnce)), { while: (more) => more })
      }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

      const enter = (place: string) =>
        Effect.suspend(() => {
          if (working.has(place)) return inUse
          working.add(place)
          return Effect.void
        })

      return {
        once: (owner, route, key, payload, work) => {
          const { account, mode } = owner
          const place = JSON.stringify([account, mode, route, key])
          return Effect.gen(function* () {
            if (!form.test(key)) return yield* badKey
            const scope = { account, mode, route, key }
            const bodyHash = Buffer.from(secrets.digest(canonical(payload)))
            return yield* Effect.acquireUseRelease(
              enter(place),
              // To the end, also when the client goes away: it may ask again before what it asked for is stored.
              () =>
                Effect.gen(function* () {
                  const now = yield* Clock.currentTimeMillis
                  const stored = yield* Repo.find(reader, scope, now - life)
                  if (stored === undefined) {
                    return yield* work(({ headers, status, text }) =>
                      Repo.keep(scope, { hash: bodyHash, status, headers, body: text }, now)
                    )
                  }
                  if (stored.hash !== undefined && !bodyHash.equals(stored.hash)) return yield* reused
                  const headers = { ...stored.headers, "idempotent-replayed": "true" }
                  return { status: stored.status, headers, text: stored.body }
                }).pipe(Effect.uninterruptible),
              () => Effect.sync(() => working.delete(place))
            )
          })
        },
        run: Effect.zipRight(Effect.repeat(alive(forget), Schedule.spaced(forgetInterval)), Effect.never)
      }
    })
  )
}
