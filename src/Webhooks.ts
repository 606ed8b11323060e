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
import * as EndpointsRepo from "./Webhooks/queue/EndpointsRepo.ts"
import { releaseEndpoint } from "./Webhooks/queue/ReleaseRepo.ts"
import { endpointContext } from "./Webhooks/SigningKeys.ts"
import { TargetGuard, type TargetRefused } from "./Webhooks/transport/TargetGuard.ts"

export { TargetRefused } from "./Webhooks/transport/TargetGuard.ts"

/** Endpoints that an account may have in each mode. */
const maxEndpoints = 50

/** The account has as many endpoints in that mode as it may. */
export class TooManyEndpoints extends Data.TaggedError("TooManyEndpoints")<{ readonly limit: number }> {}

export interface CreateEndpoint {
  /** Drawn unless it is given. */
  readonly id?: EndpointId
  readonly url: string
  /** At least one, none twice. */
  readonly events: ReadonlyArray<EventKind>
  /** `whsec_` and 16 to 256 characters. */
  readonly secret: Redacted.Redacted<string>
}

// Deliveries of a deleted endpoint that one command of the writer cancels: a million must not hold up everybody.
const releaseAtOnce = 1_000

/** Webhook endpoints as their owners manage them. Another account's, or the other mode's, are not there. */
export class Webhooks extends Context.Tag("tilld/Webhooks")<
  Webhooks,
  {
    /** Registers an endpoint. A host name that does not resolve is accepted: it may do so later. */
    readonly create: (
      owner: Owner,
      endpoint: CreateEndpoint,
      besides?: CommitWith<Endpoint>
    ) => Effect.Effect<Endpoint, TargetRefused | TooManyEndpoints | QuotaExceeded | StoreUnavailable>
    /** Oldest first. */
    readonly list: (owner: Owner) => Effect.Effect<ReadonlyArray<Endpoint>, StoreUnavailable>
    /** Deletes an endpoint and cancels its queue, except what is owed to a payment's webhookUrl too. False: not there. */
    readonly remove: (owner: Owner, id: string) => Effect.Effect<boolean, StoreUnavailable>
    /** Whether a URL may be a target as far as its text tells: form, host name, IP literals. Asks no resolver. */
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
        besides?: CommitWith<Endpoint>
      ) {
        // Names are resolved when they are dialled: who registers must not learn what they mean in this network.
        yield* guard.check(url)
        const { account, mode } = owner
        const createdAt = yield* Clock.currentTimeMillis
        const endpoint: Endpoint = { id, account, mode, url, events, createdAt }
        const sealed = secrets.seal(Redacted.value(secret), endpointContext(endpoint.id))
        const inserted = insert(endpoint, sealed)
        const stored = besides === undefined ? inserted : Effect.zipRight(inserted, besides(endpoint))
        yield* writer.write(Effect.zipRight(stored, keepWithin(account, quotaBytes)))
        return endpoint
      })

      const release = (endpoint: EndpointId): Effect.Effect<void, StoreUnavailable> =>
        Effect.repeat(writer.write(Effect.zipLeft(releaseEndpoint(endpoint, releaseAtOnce), bell.ring)), {
          until: (nothingLeft) => nothingLeft
        })

      const remove = Effect.fn("Webhooks.remove")(function* (owner: Owner, id: string) {
        const now = yield* Clock.currentTimeMillis
        const endpoint = yield* writer.write(EndpointsRepo.markDeleted(owner, id, now))
        if (endpoint === undefined) return false
        yield* release(endpoint)
        return true
      }, Effect.uninterruptible)

      // Deletions that a stop of the process cut short.
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
