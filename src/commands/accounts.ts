import { Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { CreateAccount, ListAccounts } from "../Control/controlRequests.ts"
import { keyInValue } from "../Settings/keyMaterial.ts"
import { walletIdentity } from "../Settings/walletKey.ts"
import { common, UsageError } from "./commonOptions.ts"
import { table } from "./Output.ts"
import { after, limitOf, moreOf, name, pageOf, readInput } from "./options.ts"
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

const size = (bytes: number) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`)

const list = Command.make("list", { ...common, after: after("accounts"), limit: limitOf(100) }, (options) =>
  printResult(
    options,
    "accounts list",
    new ListAccounts(pageOf(options)),
    (accounts) =>
      table(
        ["ID", "NAME", "WALLETS", "CREATED", "USED"],
        accounts.map(({ createdAt, id, name, quotaBytes, usedBytes, wallets }) => [
          id,
          name,
          wallets === "shared" ? "shared" : `own: ${wallets.join(", ")}`,
          createdAt,
          `${size(usedBytes)} of ${size(quotaBytes)}`
        ])
      ),
    moreOf(options)
  )
).pipe(
  Command.withDescription(
    "Show all accounts, whether each uses its own wallets or shares the configuration's, and what it takes of its quota"
  )
)

/** `tilld accounts`: makes and lists accounts, and changes their checkouts. */
export const accountsCommand = Command.make("accounts").pipe(
  Command.withDescription("Accounts"),
  Command.withSubcommands([create, list, shopCommand])
)
