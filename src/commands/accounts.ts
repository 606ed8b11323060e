import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { ChangeAccount, CreateAccount, ListAccounts } from "../Control/controlRequests.ts"
import { highestQuota, leastQuota } from "../Domain/Account.ts"
import { highestLimits } from "../Domain/ApiKey.ts"
import { bytesText, parseBytes } from "../Domain/byteSize.ts"
import { AccountId } from "../Domain/Ids.ts"
import { keyInValue } from "../Settings/keyMaterial.ts"
import { walletIdentity } from "../Settings/walletKey.ts"
import { common, UsageError } from "./commonOptions.ts"
import { table } from "./Output.ts"
import { after, limitOf, limitOption, moreOf, name, pageOf, readInput, refuse } from "./options.ts"
import { printResult } from "./result.ts"
import { shopCommand } from "./shop.ts"

const xpub = (option: string, mode: string) =>
  Options.text(option).pipe(
    Options.withPseudoName("FILE"),
    Options.withDescription(
      `Its ${mode} wallet: a file with an account's extended public key, or - to read it from standard input`
    ),
    Options.optional
  )

const readWallet = Effect.fnUntraced(function* (option: string, given: string) {
  const refuseSecret = (text: string) => {
    const secret = keyInValue(text)
    return secret === undefined
      ? Effect.void
      : new UsageError({
          message: `--${option} was given what looks like ${secret}, which is not shown here: tilld must never have one. Treat it as exposed`
        })
  }
  yield* refuseSecret(given)
  if (walletIdentity(given) !== undefined) {
    return yield* new UsageError({
      message: `--${option} takes a file with the extended public key, or - for standard input: all users of this machine see what a command's arguments are, and with the key every payment's address`
    })
  }
  const key = yield* readInput(given)
  yield* refuseSecret(key)
  if (walletIdentity(key) === undefined) {
    return yield* new UsageError({
      message: `--${option} must be the extended public key (xpub…) of an account, m/44'/60'/n'`
    })
  }
  return key
})

const create = Command.make(
  "create",
  {
    ...common,
    name: name("the account"),
    live: xpub("live-xpub", "live"),
    test: xpub("test-xpub", "test"),
    shared: Options.boolean("shared-wallet").pipe(
      Options.withDescription("Its payments go to the wallets of the configuration")
    )
  },
  Effect.fnUntraced(function* ({ live, shared, test, ...options }) {
    const given = [live, test].flatMap(Option.toArray)
    if (shared !== (given.length === 0)) {
      return yield* new UsageError({ message: "Give either --shared-wallet, or --live-xpub, --test-xpub or both" })
    }
    if (given.filter((key) => key === "-").length > 1) {
      return yield* new UsageError({ message: "Standard input holds one key: give the other one in a file" })
    }
    const wallets = {
      ...(Option.isSome(live) ? { live: yield* readWallet("live-xpub", live.value) } : {}),
      ...(Option.isSome(test) ? { test: yield* readWallet("test-xpub", test.value) } : {})
    }
    yield* printResult(options, "accounts create", new CreateAccount({ name: options.name, wallets }), ({ id }) => id)
  })
).pipe(Command.withDescription("Make an account, which owns keys, payments and webhooks, and print its id"))

type Listed = (typeof ListAccounts.success.Type)[number]

const accountTable = (accounts: ReadonlyArray<Listed>) =>
  table(
    ["ID", "NAME", "WALLETS", "CREATED", "USED", "LIMITS"],
    accounts.map(({ createdAt, id, name, perHour, perMinute, quotaBytes, usedBytes, wallets }) => [
      id,
      name,
      wallets === "shared" ? "shared" : `own: ${wallets.join(", ")}`,
      createdAt,
      `${bytesText(usedBytes)}${quotaBytes === undefined ? ", no quota" : ` of ${bytesText(quotaBytes)}`}`,
      `${perMinute}/min ${perHour}/h`
    ])
  )

const list = Command.make("list", { ...common, after: after("accounts"), limit: limitOf(100) }, (options) =>
  printResult(options, "accounts list", new ListAccounts(pageOf(options)), accountTable, moreOf(options))
).pipe(
  Command.withDescription(
    "Show all accounts, whether each uses its own wallets or shares the configuration's, what it has stored of its quota, and its rate limits"
  )
)

const quota = Options.text("quota").pipe(
  Options.withPseudoName("SIZE"),
  Options.withDescription("What it may store, such as 5GB; none: as much as the disk holds; default: as configured"),
  Options.mapEffect((text) => {
    if (text === "default") return Effect.succeed(null)
    if (text === "none") return Effect.succeed(0)
    const bytes = parseBytes(text) ?? 0
    return bytes >= leastQuota && bytes <= highestQuota
      ? Effect.succeed(bytes)
      : refuse("--quota must be a size such as 500MB or 5GB, at least 1MB, or none, or default")
  }),
  Options.optional
)

const id = Args.text({ name: "ID" }).pipe(
  Args.withSchema(AccountId),
  Args.withDescription("As tilld accounts list shows it: acct_…, or default")
)

const change = Command.make(
  "change",
  {
    ...common,
    id,
    quota,
    perMinute: limitOption(
      "per-minute",
      "a minute that all its keys may make together in each mode",
      highestLimits.perMinute
    ),
    perHour: limitOption("per-hour", "an hour that all its keys may make together in each mode", highestLimits.perHour)
  },
  Effect.fnUntraced(function* ({ id: account, perHour, perMinute, quota: quotaBytes, ...options }) {
    const changes = {
      ...(Option.isSome(quotaBytes) ? { quotaBytes: quotaBytes.value } : {}),
      ...(Option.isSome(perMinute) ? { perMinute: perMinute.value } : {}),
      ...(Option.isSome(perHour) ? { perHour: perHour.value } : {})
    }
    if (Object.keys(changes).length === 0) {
      return yield* new UsageError({ message: "Say what to change: --quota, --per-minute or --per-hour" })
    }
    yield* printResult(options, "accounts change", new ChangeAccount({ id: account, ...changes }), (changed) =>
      accountTable([changed])
    )
  })
).pipe(Command.withDescription("Change an account's quota or its rate limits. In force once this returns"))

/** `tilld accounts`: makes and lists accounts, and changes what they may do and their checkouts. */
export const accountsCommand = Command.make("accounts").pipe(
  Command.withDescription("Accounts"),
  Command.withSubcommands([create, list, change, shopCommand])
)
