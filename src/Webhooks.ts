import { Clock, Context, Duration, Effect, Layer, Redacted } from "effect"
import { keepWithin } from "./Auth/UsageRepo.ts"
import type { Owner, QuotaExceeded } from "./Domain/Account.ts"
import { defaultOverlapHours } from "./Domain/ApiKey.ts"
import type { EventKind } from "./Domain/Event.ts"
import { type EndpointId, newEndpointId } from "./Domain/Ids.ts"
import type { RotationUnderWay, SecretReplaced, SecretUnreadable } from "./Domain/SecretErrors.ts"
import type { PluginEndpoint } from "./Domain/Webhook.ts"
import { type Endpoint, EndpointAlike, EndpointExists, maxEndpoints, TooManyEndpoints } from "./Domain/Webhook.ts"
import { Secrets } from "./Secrets.ts"
import { Settings } from "./Settings.ts"
import { type CommitWith, Reader, type StoreUnavailable, Tx, Writer } from "./Sql.ts"
import { DeliveryBell } from "./Webhooks/queue/DeliveryBell.ts"
import * as EndpointsRepo from "./Webhooks/queue/EndpointsRepo.ts"
import { releaseEndpoint } from "./Webhooks/queue/OwnUrlRepo.ts"
import type { Rotation } from "./Webhooks/SigningKeys.ts"
import { endpointContext, SigningKeys } from "./Webhooks/SigningKeys.ts"
import { TargetGuard, type TargetRefused } from "./Webhooks/transport/TargetGuard.ts"

export { TargetRefused } from "./Webhooks/transport/TargetGuard.ts"

export interface CreateEndpoint {
  /** Default: a new random id. Given, it makes a request that is sent twice fail the second time. */
  readonly id?: EndpointId
  readonly url: string
  /** At least one, none twice; of a shop plugin's endpoint none. */
  readonly events: ReadonlyArray<EventKind>
  readonly plugin?: PluginEndpoint
  /** `whsec_` and 16 to 256 characters; of a shop plugin's endpoint any text. */
  readonly secret: Redacted.Redacted<string>
}

/** What becomes different of an endpoint; the rest stays. A new secret replaces the present one by a rotation. */
export interface EndpointChange {
  readonly url?: string | undefined
  readonly events?: ReadonlyArray<EventKind> | undefined
  /** Given of a shop plugin's endpoint, and of no other. */
  readonly plugin?: PluginEndpoint
  readonly secret?: Redacted.Redacted<string> | undefined
  /** How long the present secret also signs, when there is a new one. */
  readonly overlap?: Rotation["overlap"] | undefined
  readonly replaces?: Rotation["replaces"]
}

/** Whether two endpoints would get the same events at the same place. */
const areAlike = (one: Endpoint, other: Endpoint): boolean =>
  new URL(one.url).href === new URL(other.url).href &&
  one.events.length === other.events.length &&
  one.events.every((kind) => other.events.includes(kind))

// Deliveries of a deleted endpoint that one command of the writer releases: a million at once would block all writes.
const releaseBatch = 1_000

/**
 * Webhook endpoints as their owners manage them: create, list, change, delete, check a URL. An owner never sees endpoints of
 * another account or of the other mode, nor the own API those of shop plugins, which have `plugins` set, or the reverse. The
 * HTTP handlers and the operator's commands call it; payments use `checkTarget`.
 */
export class Webhooks extends Context.Tag("tilld/Webhooks")<
  Webhooks,
  {
    /**
     * Registers an endpoint, or gives the one that has the same URL, kinds and secret already: twice, it would get each
     * event twice. Host names are not resolved here: one that does not resolve now may do so later.
     */
    readonly create: (
      owner: Owner,
      endpoint: CreateEndpoint,
      commitWith?: CommitWith<Endpoint>
    ) => Effect.Effect<
      Endpoint,
      TargetRefused | TooManyEndpoints | EndpointAlike | EndpointExists | QuotaExceeded | StoreUnavailable
    >
    readonly get: (owner: Owner, id: string, plugins?: boolean) => Effect.Effect<Endpoint | undefined, StoreUnavailable>
    /** Oldest first. */
    readonly list: (owner: Owner, plugins?: boolean) => Effect.Effect<ReadonlyArray<Endpoint>, StoreUnavailable>
    /**
     * Changes an endpoint; undefined when there is no such one. Deliveries that are pending go to the new URL only, also
     * those of payments whose own webhookUrl is the former one, signed with the new secret as well. A plugin's endpoint
     * that is not enabled any longer loses them.
     */
    readonly change: (
      owner: Owner,
      id: string,
      change: EndpointChange,
      commitWith?: CommitWith<Endpoint>
    ) => Effect.Effect<
      Endpoint | undefined,
      TargetRefused | RotationUnderWay | SecretReplaced | SecretUnreadable | QuotaExceeded | StoreUnavailable
    >
    /**
     * Deletes an endpoint and cancels its queued deliveries, except those also owed to a payment's own webhookUrl. Returns
     * how many it cancelled; undefined when there is no such endpoint.
     */
    readonly remove: (
      owner: Owner,
      id: string,
      plugins?: boolean
    ) => Effect.Effect<number | undefined, StoreUnavailable>
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
      const keys = yield* SigningKeys
      const reader = yield* Reader
      const writer = yield* Writer
      const { quotaBytes } = (yield* Settings).accounts

      const insert = (endpoint: Endpoint, secret: Redacted.Redacted<string>) =>
        Effect.gen(function* () {
          const tx = yield* Tx
          if ((yield* EndpointsRepo.ownerOf(tx, endpoint.id)) !== undefined) {
            return yield* EndpointExists.of(endpoint.id)
          }
          const existing = yield* EndpointsRepo.list(tx, endpoint)
          const alike = endpoint.plugin === undefined && existing.find((one) => areAlike(one, endpoint))
          if (alike) {
            return (yield* keys.isOfEndpoint(alike.id, secret)) ? alike : yield* new EndpointAlike({ id: alike.id })
          }
          if (existing.length >= maxEndpoints) return yield* TooManyEndpoints.of(maxEndpoints)
          yield* EndpointsRepo.insert(endpoint, secrets.seal(Redacted.value(secret), endpointContext(endpoint.id)))
          return endpoint
        })

      const create = Effect.fn("Webhooks.create")(function* (
        owner: Owner,
        { events, id = newEndpointId(), plugin, secret, url }: CreateEndpoint,
        commitWith?: CommitWith<Endpoint>
      ) {
        // Names are resolved only when a delivery connects: registering must not reveal what they resolve to in this
        // network.
        yield* guard.check(url)
        const { account, mode } = owner
        const createdAt = yield* Clock.currentTimeMillis
        const endpoint: Endpoint = { id, account, mode, url, events, plugin, createdAt }
        const stored = Effect.tap(insert(endpoint, secret), (registered) => commitWith?.(registered) ?? Effect.void)
        // After it, since what open payments may yet store multiplies by it.
        return yield* writer.write(Effect.zipLeft(stored, keepWithin(owner, quotaBytes)))
      })

      const change = Effect.fn("Webhooks.change")(function* (
        owner: Owner,
        id: string,
        { events, overlap = Duration.hours(defaultOverlapHours), plugin, replaces, secret, url }: EndpointChange,
        commitWith?: CommitWith<Endpoint>
      ) {
        if (url !== undefined) yield* guard.check(url)
        const at = yield* Clock.currentTimeMillis
        const command = Effect.gen(function* () {
          const tx = yield* Tx
          const former = yield* EndpointsRepo.find(tx, owner, id, plugin !== undefined)
          if (former === undefined) return undefined
          const target = { url: url ?? former.url, events: events ?? former.events, plugin }
          yield* EndpointsRepo.replaceTarget({ ...former, ...target })
          if (secret !== undefined) yield* keys.rotateEndpoint(former.id, secret, { overlap, replaces }, at)
          const endpoint = (yield* EndpointsRepo.find(tx, owner, id)) ?? former
          if (commitWith !== undefined) yield* commitWith(endpoint)
          yield* keepWithin(owner, quotaBytes)
          return endpoint
        })
        const changed = yield* writer.write(command)
        if (changed?.plugin?.enabled === false) yield* release(changed.id)
        return changed
      })

      const release = Effect.fnUntraced(function* (endpoint: EndpointId) {
        let count = 0
        while (true) {
          const { cancelled, isDone } = yield* writer.write(
            Effect.zipLeft(releaseEndpoint(endpoint, releaseBatch), bell.ring)
          )
          count += cancelled
          if (isDone) return count
        }
      })

      const remove = Effect.fn("Webhooks.remove")(function* (owner: Owner, id: string, plugins = false) {
        const now = yield* Clock.currentTimeMillis
        const marked = yield* writer.write(EndpointsRepo.markDeleted(owner, id, plugins, now))
        const endpoint = marked ?? (yield* EndpointsRepo.halfDeletedOf(reader, owner, id))
        return endpoint && (yield* release(endpoint))
      }, Effect.uninterruptible)

      // Finishes what was interrupted by the end of the process.
      for (const endpoint of yield* EndpointsRepo.halfDeleted(reader)) yield* release(endpoint)

      return {
        create,
        change,
        get: (owner, id, plugins = false) => EndpointsRepo.find(reader, owner, id, plugins),
        list: (owner, plugins = false) => EndpointsRepo.list(reader, owner, plugins),
        remove,
        checkTarget: (url) => Effect.asVoid(guard.check(url))
      }
    })
  )
}
