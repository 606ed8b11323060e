import { Clock, Context, Data, Effect, Layer, Redacted } from "effect"
import { keepWithin } from "./Auth/UsageRepo.ts"
import type { QuotaExceeded } from "./Domain/AccountErrors.ts"
import type { EventKind } from "./Domain/Event.ts"
import { type EndpointId, newEndpointId } from "./Domain/Ids.ts"
import type { Owner } from "./Domain/Owner.ts"
import type { Endpoint } from "./Domain/Webhook.ts"
import { Secrets } from "./Secrets.ts"
import { Settings } from "./Settings.ts"
import { type CommitWith, Reader, type StoreUnavailable, Tx, Writer } from "./Sql.ts"
import { DeliveryBell } from "./Webhooks/queue/DeliveryBell.ts"
import { releaseEndpoint } from "./Webhooks/queue/EndpointReleaseRepo.ts"
import * as EndpointsRepo from "./Webhooks/queue/EndpointsRepo.ts"
import { endpointContext } from "./Webhooks/SigningKeys.ts"
import { TargetGuard, type TargetRefused } from "./Webhooks/transport/TargetGuard.ts"

export { TargetRefused } from "./Webhooks/transport/TargetGuard.ts"

/** Most endpoints that an account may have in each mode. */
const maxEndpoints = 50

/** The account already has the maximum number of endpoints in that mode. */
export class TooManyEndpoints extends Data.TaggedError("TooManyEndpoints")<{ readonly limit: number }> {}

export interface CreateEndpoint {
  /** Default: a new random id. */
  readonly id?: EndpointId
  readonly url: string
  /** At least one, none twice. */
  readonly events: ReadonlyArray<EventKind>
  /** `whsec_` and 16 to 256 characters. */
  readonly secret: Redacted.Redacted<string>
}

// Deliveries of a deleted endpoint that one command of the writer releases: a million at once would block all writes.
const releaseBatch = 1_000

/**
 * Webhook endpoints as their owners manage them: create, list, delete, check a URL. An owner never sees endpoints of
 * another account or of the other mode. The HTTP handlers and the operator's commands call it; payments use
 * `checkTarget`.
 */
export class Webhooks extends Context.Tag("tilld/Webhooks")<
  Webhooks,
  {
    /** Registers an endpoint. Host names are not resolved here: one that does not resolve now may do so later. */
    readonly create: (
      owner: Owner,
      endpoint: CreateEndpoint,
      commitWith?: CommitWith<Endpoint>
    ) => Effect.Effect<Endpoint, TargetRefused | TooManyEndpoints | QuotaExceeded | StoreUnavailable>
    /** Oldest first. */
    readonly list: (owner: Owner) => Effect.Effect<ReadonlyArray<Endpoint>, StoreUnavailable>
    /**
     * Deletes an endpoint and cancels its queued deliveries, except those also owed to a payment's own webhookUrl. False
     * when there is no such endpoint.
     */
    readonly remove: (owner: Owner, id: string) => Effect.Effect<boolean, StoreUnavailable>
    /** Checks the text of a URL as a target: form, host name, IP literals. Resolves nothing. */
    readonly checkTarget: (url: string) => Effect.Effect<void, TargetRefused>
  }
>() {
  static readonly layer = Layer.effect(
    Webhooks,
    Effect.gen(function* () {
      const guard = yield* TargetGuard
      const secrets = yield* Secrets
      const bell = yield* DeliveryBell
      const reader = yield* Reader
      const writer = yield* Writer
      const { quotaBytes } = (yield* Settings).accounts

      const insert = (endpoint: Endpoint, sealedSecret: Uint8Array) =>
        Effect.gen(function* () {
          const existing = yield* EndpointsRepo.list(yield* Tx, endpoint)
          if (existing.length >= maxEndpoints) return yield* new TooManyEndpoints({ limit: maxEndpoints })
          yield* EndpointsRepo.insert(endpoint, sealedSecret)
        })

      const create = Effect.fn("Webhooks.create")(function* (
        owner: Owner,
        { events, id = newEndpointId(), secret, url }: CreateEndpoint,
        commitWith?: CommitWith<Endpoint>
      ) {
        // Names are resolved only when a delivery connects: registering must not reveal what they resolve to in this
        // network.
        yield* guard.check(url)
        const { account, mode } = owner
        const createdAt = yield* Clock.currentTimeMillis
        const endpoint: Endpoint = { id, account, mode, url, events, createdAt }
        const sealed = secrets.seal(Redacted.value(secret), endpointContext(endpoint.id))
        const inserted = insert(endpoint, sealed)
        const stored = commitWith === undefined ? inserted : Effect.zipRight(inserted, commitWith(endpoint))
        yield* writer.write(Effect.zipRight(stored, keepWithin(account, quotaBytes)))
        return endpoint
      })

      const release = (endpoint: EndpointId): Effect.Effect<void, StoreUnavailable> =>
        Effect.repeat(writer.write(Effect.zipLeft(releaseEndpoint(endpoint, releaseBatch), bell.ring)), {
          until: (nothingLeft) => nothingLeft
        })

      const remove = Effect.fn("Webhooks.remove")(function* (owner: Owner, id: string) {
        const now = yield* Clock.currentTimeMillis
        const endpoint = yield* writer.write(EndpointsRepo.markDeleted(owner, id, now))
        if (endpoint === undefined) return false
        yield* release(endpoint)
        return true
      }, Effect.uninterruptible)

      // Finishes deletions that were interrupted by the end of the process.
      for (const endpoint of yield* EndpointsRepo.halfDeleted(reader)) yield* release(endpoint)

      return {
        create,
        list: (owner) => EndpointsRepo.list(reader, owner),
        remove,
        checkTarget: (url) => Effect.asVoid(guard.check(url))
      }
    })
  )
}
