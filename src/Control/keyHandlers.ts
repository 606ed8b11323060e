import { Duration, Effect, Redacted } from "effect"
import * as KeysRepo from "../Auth/KeysRepo.ts"
import { Keys, type MadeKey } from "../Auth.ts"
import type { ApiKey, KeyTerms } from "../Domain/ApiKey.ts"
import { newApiKeyId } from "../Domain/Ids.ts"
import { iso } from "../Domain/Timestamp.ts"
import { Reader } from "../Sql.ts"
import { administering, reading } from "./controlHandler.ts"
import * as Requests from "./controlRequests.ts"

const keyView = (key: ApiKey): Requests.KeyView => ({
  id: key.id,
  name: key.name,
  account: key.account,
  mode: key.mode,
  lastFour: key.lastFour,
  permissions: key.permissions,
  ...(key.ips.length === 0 ? {} : { ips: key.ips }),
  ...(key.perMinute === undefined ? {} : { perMinute: key.perMinute }),
  ...(key.perHour === undefined ? {} : { perHour: key.perHour }),
  createdAt: iso(key.createdAt),
  ...(key.lastUsedAt === undefined ? {} : { lastUsedAt: iso(key.lastUsedAt) }),
  ...(key.expiresAt === undefined ? {} : { expiresAt: iso(key.expiresAt) }),
  ...(key.revokedAt === undefined ? {} : { revokedAt: iso(key.revokedAt) }),
  ...(key.rolledTo === undefined ? {} : { rolledTo: key.rolledTo })
})

const madeView = ({ key, record: { account, id, mode, permissions } }: MadeKey) => ({
  ...{ id, key: Redacted.value(key), mode, permissions, account }
})

const orNotFound = <A>(id: string, found: A | undefined) =>
  found === undefined
    ? new Requests.NotFound({ message: `There is no key ${id}: tilld keys list names all` })
    : Effect.succeed(found)

type GivenTerms = Pick<Requests.ChangeKey, "ips" | "perMinute" | "perHour">

const termsOf = ({ ips, perHour, perMinute }: GivenTerms): Partial<KeyTerms> => ({
  ...(ips === undefined ? {} : { ips }),
  ...(perMinute === undefined ? {} : { perMinute: perMinute ?? undefined }),
  ...(perHour === undefined ? {} : { perHour: perHour ?? undefined })
})

/** The terms as the audit log has them. */
const notedTerms = ({ ips, perHour, perMinute }: GivenTerms) => ({
  ips,
  perMinute: perMinute === null ? "default" : perMinute,
  perHour: perHour === null ? "default" : perHour
})

export const createKey = administering(
  Requests.CreateKey,
  (request) => {
    const { account, expiresIn, mode, name, permissions } = request
    return {
      act: "keys create",
      detail: {
        ...{ key: newApiKeyId(), account, mode, name, permissions, ...notedTerms(request) },
        expiresIn: expiresIn === undefined ? undefined : Duration.format(expiresIn)
      }
    }
  },
  Effect.fnUntraced(function* (request, { key: id }) {
    const keys = yield* Keys
    const { account, expiresIn, mode, name, permissions } = request
    const given = { id, account, mode, name, permissions, expiresIn, ...termsOf(request) }
    // The id was drawn for this request.
    return madeView(yield* Effect.catchTags(keys.create(given), { KeyExists: Effect.die, LimitRefused: Effect.die }))
  })
)

export const listKeys = reading(
  Requests.ListKeys,
  Effect.fnUntraced(function* (page) {
    const { after } = page
    if (after !== undefined) yield* orNotFound(after, yield* KeysRepo.byId(yield* Reader, after))
    const keys = yield* Keys
    return (yield* keys.list(page)).map(keyView)
  })
)

export const revokeKey = administering(
  Requests.RevokeKey,
  ({ id }) => ({ act: "keys revoke", detail: { key: id } }),
  Effect.fnUntraced(function* ({ id }) {
    const keys = yield* Keys
    return keyView(yield* orNotFound(id, yield* keys.revoke(id)))
  })
)

export const rollKey = administering(
  Requests.RollKey,
  ({ id, overlap }) => ({
    act: "keys roll",
    detail: { key: id, to: newApiKeyId(), overlap: Duration.format(overlap) }
  }),
  Effect.fnUntraced(function* ({ id, overlap }, { to }) {
    const keys = yield* Keys
    const rolled = Effect.catchTag(keys.roll(id, to, overlap), "KeyExists", Effect.die)
    return madeView(yield* orNotFound(id, yield* rolled))
  })
)

export const changeKey = administering(
  Requests.ChangeKey,
  (request) => ({ act: "keys change", detail: { key: request.id, ...notedTerms(request) } }),
  Effect.fnUntraced(function* (request) {
    const keys = yield* Keys
    const changed = Effect.catchTag(keys.change(request.id, termsOf(request)), "LimitRefused", Effect.die)
    return keyView(yield* orNotFound(request.id, yield* changed))
  })
)
