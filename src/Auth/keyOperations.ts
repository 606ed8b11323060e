/** Operations on API keys, for operators and for admins of an account; and the link that signs a person in. */
import { Duration, Effect, Redacted, Schema } from "effect"
import { KeyEnded, KeyExists, LimitRefused, QuotaExceeded, TooMany, UnknownAccount } from "../Domain/Account.ts"
import {
  type ApiKey,
  defaultOverlapHours,
  highestLimits,
  isPluginKey,
  type KeyTerms,
  longestOverlap,
  Permission,
  permissions
} from "../Domain/ApiKey.ts"
import { Mode } from "../Domain/Chain.ts"
import { AccountId, ApiKeyId, newApiKeyId } from "../Domain/Ids.ts"
import { Role } from "../Domain/Person.ts"
import { PluginPermission, pluginPermissions, storeIdOf } from "../Domain/Plugin.ts"
import { must } from "../lib/annotations.ts"
import { IpRange } from "../lib/IpRange.ts"
import { Moment } from "../lib/moment.ts"
import {
  AccountField,
  accountRule,
  durationUpTo,
  GivenName,
  ModeField,
  maybe,
  NotFound,
  nameLength,
  notedRate,
  otherwise,
  pageFields,
  rateField
} from "../Operations/inputFields.ts"
import { type Caller, operation, withFlag } from "../Operations/operation.ts"
import { Settings } from "../Settings.ts"
import { Keys, type MadeKey } from "./Keys.ts"
import { linkPath, makeLink } from "./loginLinks.ts"

const Key = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  account: Schema.String,
  mode: Mode,
  lastFour: Schema.String,
  permissions: Schema.Array(Permission),
  /** Of a shop plugin's key. */
  pluginPermissions: Schema.optional(Schema.Array(PluginPermission)),
  /** CIDR blocks; absent: it may be used from everywhere. */
  ips: Schema.optional(Schema.Array(Schema.String)),
  /** Its own limits, in requests; absent: as configured. */
  perMinute: Schema.optional(Schema.Number),
  perHour: Schema.optional(Schema.Number),
  createdAt: Moment,
  lastUsedAt: Schema.optional(Moment),
  expiresAt: Schema.optional(Moment),
  revokedAt: Schema.optional(Moment),
  /** The key that replaces it. */
  rolledTo: Schema.optional(Schema.String)
})
export type KeyJson = typeof Key.Encoded

const orNone = <A>(list: ReadonlyArray<A>) => (list.length === 0 ? undefined : list)

const keyView = ({ ips, pluginPermissions, ...key }: ApiKey) => ({
  ...{ ...key, ips: orNone(ips), pluginPermissions: orNone(pluginPermissions) }
})

/** A key with its text, which nothing shows again. */
const NewKey = Schema.Struct({
  id: Schema.String,
  key: Schema.String,
  mode: Mode,
  permissions: Schema.Array(Permission),
  account: Schema.String,
  pluginPermissions: Schema.optional(Schema.Array(PluginPermission)),
  /** What a shop plugin takes beside the key. */
  storeId: Schema.optional(Schema.String)
})

export type NewKeyJson = typeof NewKey.Encoded

const newKeyView = ({ key, record }: MadeKey) => ({
  ...{ ...keyView(record), key: Redacted.value(key) },
  storeId: isPluginKey(record) ? storeIdOf(record) : undefined
})

const unknownKey = (id: string) => new NotFound({ message: `There is no key ${id}: tilld keys list names all` })

const orUnknown = <A>(id: string, found: A | undefined) =>
  found === undefined ? unknownKey(id) : Effect.succeed(found)

/** Maximum number of CIDR blocks of a key: an address is compared with each. */
export const mostRanges = 100

/** Where a key may be used from, and its limits; null: as configured. */
const terms = {
  ips: withFlag(
    maybe(
      Schema.Array(IpRange).pipe(
        Schema.maxItems(mostRanges, { message: () => `must have ${mostRanges} blocks at most` })
      )
    ),
    {
      about:
        "An address, or a block such as 203.0.113.0/24 or 2001:db8::/32, that it may be used from; may be repeated. any: from everywhere",
      name: "ip",
      value: "CIDR",
      words: { any: [] }
    }
  ),
  perMinute: rateField("a minute that it may make", highestLimits.perMinute),
  perHour: rateField("an hour that it may make", highestLimits.perHour)
}

interface GivenTerms {
  readonly ips?: ReadonlyArray<string>
  readonly perMinute?: number | null
  readonly perHour?: number | null
}

const termsOf = ({ ips, perHour, perMinute }: GivenTerms): Partial<KeyTerms> => ({
  ...(ips === undefined ? {} : { ips: [...new Set(ips)] }),
  ...(perMinute === undefined ? {} : { perMinute: perMinute ?? undefined }),
  ...(perHour === undefined ? {} : { perHour: perHour ?? undefined })
})

/** The terms as the audit log has them. */
const noted = ({ ips, perHour, perMinute }: GivenTerms) => ({
  ips: ips && [...new Set(ips)],
  perMinute: notedRate(perMinute),
  perHour: notedRate(perHour)
})

/** The limits that an admin of an account may not exceed; none for an operator. */
const limitsFor = ({ isOperator }: Caller) =>
  isOperator
    ? Effect.succeed(undefined)
    : Effect.gen(function* () {
        return (yield* Settings).limits
      })

/** The id of a new key. The client chooses it, so that a request that is sent twice makes one key. */
const NewKeyId = otherwise(
  must("be the id of a new key, key_ and 22 random characters, or absent", ApiKeyId),
  newApiKeyId
)

const id = withFlag(Schema.String, { about: "As tilld keys list shows it: key_…", value: "ID", isArgument: true })

/** One or more of known words, in the order given, each once. */
const someOf = <A extends string>(known: Schema.Schema<A> & { readonly literals: ReadonlyArray<A> }) =>
  Schema.Array(must(`be one of ${known.literals.join(", ")}`, known)).pipe(
    Schema.minItems(1, { message: () => "must have at least one" }),
    Schema.maxItems(known.literals.length)
  )

interface GivenPermissions {
  readonly permissions?: ReadonlyArray<Permission>
  readonly pluginPermissions?: ReadonlyArray<PluginPermission>
}

/** What a new key may do: all of the API where nothing is given. */
const permissionsOf = ({ permissions: some = permissions, pluginPermissions }: GivenPermissions) =>
  pluginPermissions === undefined
    ? { permissions: some }
    : { permissions: [], pluginPermissions: [...new Set(pluginPermissions)] }

export const createKey = operation({
  name: "keys create",
  summary: "Make an API key and print it, once",
  input: {
    id: NewKeyId,
    mode: ModeField,
    name: withFlag(GivenName, { about: `What the key is called, up to ${nameLength} characters`, value: "TEXT" }),
    account: AccountField,
    permissions: withFlag(maybe(someOf(Permission)), {
      about: `What it may do, of ${permissions.join(", ")}; otherwise all`,
      value: "A,B"
    }),
    pluginPermissions: withFlag(maybe(someOf(PluginPermission)), {
      about: `Makes a key for a shop plugin, which may do only this, of ${pluginPermissions.join(", ")}; all for all`,
      value: "A,B",
      words: { all: pluginPermissions }
    }),
    /** Who asked for it when a shop plugin was connected: for the audit log, as they say themselves. */
    application: maybe(Schema.String),
    origin: maybe(Schema.String),
    expires: withFlag(maybe(durationUpTo("3650 days", false)), {
      about: "How long the key works, such as 90d; without it, the key does not expire",
      value: "DURATION"
    }),
    ...terms
  },
  output: NewKey,
  refusals: [UnknownAccount, KeyExists, TooMany, QuotaExceeded, LimitRefused],
  check: (input) =>
    input.permissions !== undefined && input.pluginPermissions !== undefined
      ? "A key is either for the API or for a shop plugin: give one kind of permissions"
      : undefined,
  audit: ({ account, application, expires, id: key, mode, name, origin, ...given }) => ({
    ...{ key, account, mode, name, application, origin, ...permissionsOf(given), ...noted(given) },
    expiresIn: expires && Duration.format(expires)
  }),
  run: Effect.fnUntraced(function* ({ account, expires: expiresIn, id, mode, name, ...given }, caller) {
    const keys = yield* Keys
    const key = { id, account, mode, name, expiresIn, ...permissionsOf(given), ...termsOf(given) }
    return newKeyView(yield* keys.create(key, yield* limitsFor(caller)))
  })
})

export const listKeys = operation({
  name: "keys list",
  summary: "List all keys, revoked and expired ones included",
  input: pageFields("keys", 100),
  output: Schema.Array(Key),
  refusals: [NotFound],
  run: Effect.fnUntraced(function* (page) {
    const keys = yield* Keys
    if (page.after !== undefined && !(yield* keys.exists(page.after))) return yield* unknownKey(page.after)
    return (yield* keys.list(page)).map(keyView)
  })
})

export const rollKey = operation({
  name: "keys roll",
  summary:
    "Make a key like this one, print it, once, and end this one after an overlap. If it expires, the new one lasts as long as it was made for",
  input: {
    id,
    to: NewKeyId,
    overlap: withFlag(
      otherwise(durationUpTo(longestOverlap), () => Duration.hours(defaultOverlapHours)),
      {
        about: "How long the present key still works; otherwise 24h. 0s ends it now",
        value: "DURATION"
      }
    )
  },
  output: NewKey,
  refusals: [NotFound, KeyEnded, KeyExists, TooMany, QuotaExceeded],
  audit: ({ id: key, overlap, to }) => ({ key, to, overlap: Duration.format(overlap) }),
  run: Effect.fnUntraced(function* ({ id, overlap, to }) {
    const keys = yield* Keys
    return newKeyView(yield* orUnknown(id, yield* keys.roll(id, to, overlap)))
  })
})

export const changeKey = operation({
  name: "keys change",
  summary: "Change where a key may be used from, the whole list, or its limits. In force once this returns",
  input: { id, ...terms },
  check: ({ ips, perHour, perMinute }) =>
    ips === undefined && perHour === undefined && perMinute === undefined
      ? "Say what to change: the addresses, or the limit of a minute or an hour"
      : undefined,
  output: Key,
  refusals: [NotFound, KeyEnded, LimitRefused],
  audit: ({ id: key, ...given }) => ({ key, ...noted(given) }),
  run: Effect.fnUntraced(function* ({ id, ...given }, caller) {
    const keys = yield* Keys
    return keyView(yield* orUnknown(id, yield* keys.change(id, termsOf(given), yield* limitsFor(caller))))
  })
})

export const revokeKey = operation({
  name: "keys revoke",
  summary: "Revoke a key: requests with it are refused once this returns",
  input: { id },
  output: Key,
  refusals: [NotFound],
  audit: ({ id: key }) => ({ key }),
  run: Effect.fnUntraced(function* ({ id }) {
    const keys = yield* Keys
    return keyView(yield* orUnknown(id, yield* keys.revoke(id)))
  })
})

/** `portal.enabled` is false: a link would lead nowhere. */
export class PortalDisabled extends Schema.TaggedError<PortalDisabled>()("PortalDisabled", {
  message: Schema.String
}) {}

/** Without an account an operator's, otherwise an admin's, unless the role says more. */
const roleOf = ({ account, role = account === undefined ? "operator" : "admin" }: Holder) => role

interface Holder {
  readonly account?: AccountId
  readonly role?: Role
}

export const makeLoginLink = operation({
  name: "login",
  summary:
    "Print a one-time link that signs a person in to the portal. The same name, role and account are the same person",
  input: {
    account: withFlag(maybe(must(accountRule, AccountId)), {
      about: "The account that the person administers or views; without it the person is an operator",
      value: "ID"
    }),
    role: withFlag(maybe(Role), {
      about: "operator: all accounts, chains and people; admin: one account; viewer: reads one account"
    }),
    name: withFlag(GivenName, {
      about: `What the person is called, up to ${nameLength} characters`,
      value: "TEXT",
      isOptional: true
    })
  },
  check: (holder) => {
    if ((holder.account === undefined) === (roleOf(holder) === "operator")) return undefined
    return holder.account === undefined
      ? "Say of which account: only an operator belongs to none"
      : "An operator belongs to no account: leave out the account, or the role"
  },
  output: Schema.Struct({ url: Schema.String }),
  refusals: [UnknownAccount, TooMany, PortalDisabled],
  audit: ({ name, ...holder }) => ({ name, role: roleOf(holder), account: holder.account }),
  run: Effect.fnUntraced(function* ({ name, ...holder }, _, note) {
    const { portal, server } = yield* Settings
    if (!portal.enabled) {
      return yield* new PortalDisabled({ message: "The portal is off: set portal.enabled to true, and reload tilld" })
    }
    const who = { name, role: roleOf(holder), account: holder.account }
    const { token } = yield* makeLink(who, ({ id }) => note({ person: id }))
    return { url: server.publicUrl + linkPath(token) }
  })
})
