import { Args, Command, Options } from "@effect/cli"
import { Duration, Effect, Option } from "effect"
import { CreateKey, type KeyView, ListKeys, RevokeKey } from "../Control/controlRequests.ts"
import { permissions } from "../Domain/ApiKey.ts"
import { common } from "./commonOptions.ts"
import { table } from "./Output.ts"
import { account, durationOption, listOption, mode, name, refuse } from "./options.ts"
import { printResult } from "./result.ts"

const expires = durationOption("expires").pipe(
  Options.withDescription("How long the key works, such as 90d; otherwise for ever"),
  Options.mapEffect((length) =>
    Duration.greaterThan(length, Duration.zero) ? Effect.succeed(length) : refuse("--expires must be longer than zero")
  ),
  Options.optional
)

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
    expires
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
        ...Option.match(options.expires, { onNone: () => ({}), onSome: (expiresIn) => ({ expiresIn }) })
      }),
      ({ key }) => key,
      ({ id }) => `This is key ${id}. It is shown only now: keep it where only your server can read it.`
    )
).pipe(Command.withDescription("Make an API key and print it, once"))

const state = (key: KeyView) =>
  key.revokedAt !== undefined
    ? `revoked ${key.revokedAt}`
    : key.expiresAt !== undefined
      ? `expires ${key.expiresAt}`
      : ""

const list = Command.make("list", common, (options) =>
  printResult(options, "keys list", new ListKeys(), (keys) =>
    table(
      ["ID", "NAME", "ACCOUNT", "KEY", "CREATED", "LAST USED", "", "PERMISSIONS"],
      keys.map((key) => [
        key.id,
        key.name,
        key.account,
        `svc_${key.mode}_…${key.lastFour}`,
        key.createdAt,
        key.lastUsedAt ?? "never",
        state(key),
        key.permissions.length === permissions.length ? "all" : key.permissions.join(",")
      ])
    )
  )
).pipe(Command.withDescription("List all keys, revoked and expired ones included"))

const revoke = Command.make(
  "revoke",
  { ...common, id: Args.text({ name: "ID" }).pipe(Args.withDescription("As tilld keys list shows it: key_…")) },
  (options) =>
    printResult(
      options,
      "keys revoke",
      new RevokeKey({ id: options.id }),
      (key) => `Revoked ${key.id} (${key.name}) at ${key.revokedAt}`
    )
).pipe(Command.withDescription("Revoke a key: requests with it are refused once this returns"))

/** `tilld keys`: makes, lists and revokes API keys. */
export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([create, list, revoke])
)
