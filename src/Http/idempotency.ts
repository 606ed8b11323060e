import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { Owner } from "../Domain/Account.ts"
import { ApiError, invalid } from "../Domain/ApiError.ts"
import { canonicalJson } from "../lib/Json.ts"
import { Secrets } from "../Secrets.ts"
import { Reader, type StoreUnavailable, type Tx } from "../Sql.ts"
import * as Repo from "./IdempotencyRepo.ts"

/** How long a response is given again. `Housekeeping` deletes it after that. */
export const lifetime = Duration.toMillis("24 hours")

/** A response that can be sent again. */
export interface Replay {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** JSON. */
  readonly text: string
}

/** Stores a response, in the transaction of the request's effect. */
export type StoreReplay = (response: Replay) => Effect.Effect<void, StoreUnavailable, Tx>

const form = /^[\x20-\x7e]{1,255}$/

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

/** Gives a repeated request the response of the first one, without repeating its effect. Keys are used by `respond`. */
export class Idempotency extends Context.Tag("tilld/Http/Idempotency")<
  Idempotency,
  {
    /**
     * Runs `work` for a request with an `Idempotency-Key`, unless a response to it was stored in the last 24 hours: then
     * that response is returned. Only responses that `work` passes to `storeReplay` are stored: a request that was refused
     * can be sent again with the same key. Fails when the key is invalid, in use, or was used with another body.
     */
    readonly once: <E>(
      owner: Owner,
      route: string,
      key: string,
      payload: unknown,
      work: (storeReplay: StoreReplay) => Effect.Effect<Replay, E>
    ) => Effect.Effect<Replay, E | ApiError | StoreUnavailable>
  }
>() {
  static readonly layer = Layer.effect(
    Idempotency,
    Effect.gen(function* () {
      const secrets = yield* Secrets
      const reader = yield* Reader
      // In memory: one process serves the database, so it knows all requests in flight.
      const underWay = new Set<string>()

      const enter = (scopedKey: string) =>
        Effect.suspend(() => {
          if (underWay.has(scopedKey)) return inUse
          underWay.add(scopedKey)
          return Effect.void
        })

      return {
        once: (owner, route, key, payload, work) => {
          const { account, mode } = owner
          const scopedKey = JSON.stringify([account, mode, route, key])
          return Effect.gen(function* () {
            if (!form.test(key)) return yield* badKey
            const scope = { account, mode, route, key }
            const bodyHash = Buffer.from(secrets.digest(canonicalJson(payload)))
            return yield* Effect.acquireUseRelease(
              enter(scopedKey),
              // Uninterruptible: a client that goes away may repeat the request before the first one's effect is stored.
              () =>
                Effect.gen(function* () {
                  const now = yield* Clock.currentTimeMillis
                  const stored = yield* Repo.find(reader, scope, now - lifetime)
                  if (stored === undefined) {
                    return yield* work(({ headers, status, text }) =>
                      Repo.keep(scope, { hash: bodyHash, status, headers, body: text }, now)
                    )
                  }
                  if (stored.hash !== undefined && !bodyHash.equals(stored.hash)) return yield* reused
                  const headers = { ...stored.headers, "idempotent-replayed": "true" }
                  return { status: stored.status, headers, text: stored.body }
                }).pipe(Effect.uninterruptible),
              () => Effect.sync(() => underWay.delete(scopedKey))
            )
          })
        }
      }
    })
  )
}
