import { Command } from "@effect/cli"
import { Duration } from "effect"
import {
  changeKey,
  createKey,
  type KeyJson,
  listKeys,
  type NewKeyJson,
  revokeKey,
  rollKey
} from "../Auth/keyOperations.ts"
import { permissions } from "../Domain/ApiKey.ts"
import { table } from "./Output.ts"
import { commandOf, moreAfter } from "./operationCommand.ts"

const shownOnce = ({ id, storeId }: NewKeyJson) =>
  `This is key ${id}. It is shown only now: keep it where only your server can read it.${
    storeId === undefined ? "" : ` The plugin also asks for the store id: ${storeId}`
  }`

const state = ({ expiresAt, revokedAt, rolledTo }: KeyJson) =>
  [
    ...(rolledTo === undefined ? [] : [`rolled to ${rolledTo}`]),
    ...(revokedAt !== undefined ? [`revoked ${revokedAt}`] : expiresAt !== undefined ? [`expires ${expiresAt}`] : [])
  ].join(", ")

const limits = ({ perHour, perMinute }: KeyJson) =>
  [...(perMinute === undefined ? [] : [`${perMinute}/min`]), ...(perHour === undefined ? [] : [`${perHour}/h`])].join(
    " "
  ) || "default"

/** Where a key may be used from. JSON has the rest of a long list. */
const places = ({ ips = [] }: KeyJson) =>
  ips.length <= 3 ? ips.join(",") || "any" : `${ips.slice(0, 2).join(",")} and ${ips.length - 2} more`

const keyTable = (keys: ReadonlyArray<KeyJson>) =>
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
      key.permissions.length === permissions.length ? "all" : (key.pluginPermissions ?? key.permissions).join(",")
    ])
  )

const create = commandOf(createKey, { print: ({ key }) => key, explain: shownOnce })

const list = commandOf(listKeys, { print: keyTable, explain: moreAfter })

const roll = commandOf(rollKey, {
  print: ({ key }) => key,
  explain: (made, { id: former, overlap }) =>
    `${shownOnce(made)} ${former} ${Duration.equals(overlap, Duration.zero) ? "has ended" : `ends in ${Duration.format(overlap)}`}.`
})

const change = commandOf(changeKey, { print: (key) => keyTable([key]) })

const revoke = commandOf(revokeKey, { print: ({ id, name, revokedAt }) => `Revoked ${id} (${name}) at ${revokedAt}` })

/** `tilld keys`: makes, lists, rolls, changes and revokes API keys. */
export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([create, list, roll, change, revoke])
)
