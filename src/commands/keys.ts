import { Args, Command, Options } from "@effect/cli"
import { Duration, Effect, Either, Option } from "effect"
import {
  ChangeKey,
  CreateKey,
  type KeyView,
  ListKeys,
  mostRanges,
  RevokeKey,
  RollKey
} from "../Control/controlRequests.ts"
import { highestLimits, permissions } from "../Domain/ApiKey.ts"
import { canonicalRange } from "../Domain/IpRange.ts"
import { common, UsageError } from "./commonOptions.ts"
import { table } from "./Output.ts"
import {
  account,
  after,
  durationOption,
  limitOf,
  limitOption,
  listOption,
  mode,
  moreOf,
  name,
  overlapOption,
  pageOf,
  refuse
} from "./options.ts"
import { printResult } from "./result.ts"

const expires = durationOption("expires").pipe(
  Options.withDescription("How long the key works, such as 90d; otherwise for ever"),
  Options.mapEffect((length) =>
    Duration.greaterThan(length, Duration.zero) ? Effect.succeed(length) : refuse("--expires must be longer than zero")
  ),
  Options.optional
)

const rangeOf = (text: string) =>
  Either.match(canonicalRange(text), {
    onLeft: (problem) => refuse(`--ip ${JSON.stringify(text)} ${problem}`),
    onRight: Effect.succeed
  })

/** Where a key may be used from: no blocks for everywhere; none when it was not given. */
const ips = Options.text("ip").pipe(
  Options.withPseudoName("CIDR"),
  Options.withDescription(
    "An address, or a block such as 203.0.113.0/24 or 2001:db8::/32, that it may be used from; may be repeated. any: from everywhere"
  ),
  Options.repeated,
  Options.mapEffect((given) => {
    if (given.length === 0) return Effect.succeedNone
    if (given.length > mostRanges) return refuse(`--ip can be given ${mostRanges} times at most`)
    if (given.length === 1 && given[0] === "any") return Effect.succeedSome<ReadonlyArray<string>>([])
    return Effect.map(Effect.forEach(given, rangeOf, { concurrency: 1 }), (ranges) =>
      Option.some<ReadonlyArray<string>>([...new Set(ranges)])
    )
  })
)

const terms = {
  ips,
  perMinute: limitOption("per-minute", "a minute that it may make", highestLimits.perMinute),
  perHour: limitOption("per-hour", "an hour that it may make", highestLimits.perHour)
}

/** What the terms' options say, for a request. */
const given = (options: {
  readonly ips: Option.Option<ReadonlyArray<string>>
  readonly perMinute: Option.Option<number | null>
  readonly perHour: Option.Option<number | null>
}) => ({
  ...(Option.isSome(options.ips) ? { ips: options.ips.value } : {}),
  ...(Option.isSome(options.perMinute) ? { perMinute: options.perMinute.value } : {}),
  ...(Option.isSome(options.perHour) ? { perHour: options.perHour.value } : {})
})

const shownOnce = (id: string) => `This is key ${id}. It is shown only now: keep it where only your server can read it.`

const create = Command.make(
  "create",
  {
    ...common,
    mode,
    name: name("the key"),
    account,
    permissions: listOption("permissions", permissions).pipe(
      Options.withDescription(`What it may do, of ${permissions.join(", ")}; otherwise all`),
      Options.withDefault(permissions)
    ),
    expires,
    ...terms
  },
  (options) =>
    printResult(
      options,
      "keys create",
      new CreateKey({
        account: options.account,
        mode: options.mode,
        name: options.name,
        permissions: options.permissions,
        ...Option.match(options.expires, { onNone: () => ({}), onSome: (expiresIn) => ({ expiresIn }) }),
        ...given(options)
      }),
      ({ key }) => key,
      ({ id }) => shownOnce(id)
    )
).pipe(Command.withDescription("Make an API key and print it, once"))

const state = ({ expiresAt, revokedAt, rolledTo }: KeyView) =>
  [
    ...(rolledTo === undefined ? [] : [`rolled to ${rolledTo}`]),
    ...(revokedAt !== undefined ? [`revoked ${revokedAt}`] : expiresAt !== undefined ? [`expires ${expiresAt}`] : [])
  ].join(", ")

const limits = ({ perHour, perMinute }: KeyView) =>
  [...(perMinute === undefined ? [] : [`${perMinute}/min`]), ...(perHour === undefined ? [] : [`${perHour}/h`])].join(
    " "
  ) || "default"

/** Where a key may be used from. JSON has the rest of a long list. */
const places = ({ ips = [] }: KeyView) =>
  ips.length <= 3 ? ips.join(",") || "any" : `${ips.slice(0, 2).join(",")} and ${ips.length - 2} more`

const keyTable = (keys: ReadonlyArray<KeyView>) =>
  table(
    ["ID", "NAME", "ACCOUNT", "KEY", "CREATED", "LAST USED", "STATE", "LIMITS", "FROM", "PERMISSIONS"],
    keys.map((key) => [
      key.id,
      key.name,
      key.account,
      `svc_${key.mode}_…${key.lastFour}`,
      key.createdAt,
      key.lastUsedAt ?? "never",
      state(key),
      limits(key),
      places(key),
      key.permissions.length === permissions.length ? "all" : key.permissions.join(",")
    ])
  )

const list = Command.make("list", { ...common, after: after("keys"), limit: limitOf(100) }, (options) =>
  printResult(options, "keys list", new ListKeys(pageOf(options)), keyTable, moreOf(options))
).pipe(Command.withDescription("List all keys, revoked and expired ones included"))

const id = Args.text({ name: "ID" }).pipe(Args.withDescription("As tilld keys list shows it: key_…"))

const roll = Command.make(
  "roll",
  {
    ...common,
    id,
    overlap: overlapOption.pipe(
      Options.withDescription("How long the present key still works; otherwise 24h. 0s ends it now"),
      Options.withDefault(Duration.hours(24))
    )
  },
  ({ id: former, overlap, ...options }) =>
    printResult(
      options,
      "keys roll",
      new RollKey({ id: former, overlap }),
      ({ key }) => key,
      ({ id }) =>
        `${shownOnce(id)} ${former} ${Duration.equals(overlap, Duration.zero) ? "has ended" : `ends in ${Duration.format(overlap)}`}.`
    )
).pipe(
  Command.withDescription(
    "Make a key like this one, print it, once, and end this one after an overlap. If it expires, the new one lasts as long as it was made for"
  )
)

const change = Command.make(
  "change",
  { ...common, id, ...terms },
  Effect.fnUntraced(function* ({ id, ips, perHour, perMinute, ...options }) {
    const changes = given({ ips, perHour, perMinute })
    if (Object.keys(changes).length === 0) {
      return yield* new UsageError({ message: "Say what to change: --ip, --per-minute or --per-hour" })
    }
    yield* printResult(options, "keys change", new ChangeKey({ id, ...changes }), (key) => keyTable([key]))
  })
).pipe(
  Command.withDescription(
    "Change where a key may be used from, the whole list, or its limits. In force once this returns"
  )
)

const revoke = Command.make("revoke", { ...common, id }, (options) =>
  printResult(
    options,
    "keys revoke",
    new RevokeKey({ id: options.id }),
    (key) => `Revoked ${key.id} (${key.name}) at ${key.revokedAt}`
  )
).pipe(Command.withDescription("Revoke a key: requests with it are refused once this returns"))

/** `tilld keys`: makes, lists, rolls, changes and revokes API keys. */
export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([create, list, roll, change, revoke])
)
