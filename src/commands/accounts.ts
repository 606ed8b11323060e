import { Command } from "@effect/cli"
import { Effect } from "effect"
import { changeAccount, createAccount, type ListedAccountJson, listAccounts } from "../Auth/accountOperations.ts"
import { changeShop, showShop } from "../Auth/shopOperations.ts"
import type { Shop } from "../Domain/Shop.ts"
import { bytesText } from "../lib/quantities.ts"
import { walletIdentity } from "../Settings/hdWallet.ts"
import { keyInValue } from "../Settings/keyMaterial.ts"
import { table } from "./Output.ts"
import { commandOf, commandWith, moreAfter, printOperation } from "./operationCommand.ts"
import { readInput, UsageError } from "./options.ts"

const described = ({ currency, frameOrigins, invoiceRefs, minimumUsd, plugins, timezone, ...shop }: Shop) =>
  [
    `name     ${shop.name ?? "none"}`,
    `accent   ${shop.accent ?? "tilld's own"}`,
    `logo     ${shop.logo ?? "none"}`,
    `website  ${shop.website ?? "none"}`,
    `contact  ${shop.contact ?? "none"}`,
    `days     of ${timezone ?? "UTC"}, worth in ${currency ?? "USD"}`,
    `minimum  ${minimumUsd === undefined ? "none" : `${minimumUsd} USD`}`,
    `invoices ${invoiceRefs === "repeat" ? "may repeat" : "never repeat"} a reference`,
    `plugins  ${plugins === "on" ? "of shops may connect" : "off"}`,
    `frames   ${frameOrigins.length === 0 ? "no site may show the checkout in a frame" : frameOrigins.join(", ")}`
  ].join("\n")

/** `tilld accounts shop`: shows or changes how an account's checkout looks and its portal counts. */
const shopCommand = commandWith(
  "shop",
  "Show how an account's checkout looks and its portal counts, or change what is given of it",
  changeShop.fields,
  (json, target) =>
    Object.keys(json).some((name) => name !== "account")
      ? printOperation(changeShop, { print: described }, json, target)
      : printOperation(showShop, { print: described }, json, target)
)

/** Reads the file of an extended public key. What looks like the key itself was shown to all users of this machine. */
const readWallet = Effect.fnUntraced(function* (option: string, place: string) {
  if (walletIdentity(place) !== undefined) {
    return yield* new UsageError({
      message: `${option} takes a file with the extended public key, or - for standard input: all users of this machine see what a command's arguments are, and with the key every payment's address`
    })
  }
  // The input's schema says what is wrong with a secret.
  return keyInValue(place) === undefined ? yield* readInput(place) : place
})

const create = commandOf(createAccount, { print: ({ id }) => id }, ({ liveXpub: live, testXpub: test, ...json }) =>
  Effect.gen(function* () {
    if (live === "-" && test === "-") {
      return yield* new UsageError({ message: "Standard input holds one key: give the other one in a file" })
    }
    return {
      ...json,
      ...(live === undefined ? {} : { liveXpub: yield* readWallet("--live-xpub", String(live)) }),
      ...(test === undefined ? {} : { testXpub: yield* readWallet("--test-xpub", String(test)) })
    }
  })
)

const accountTable = (accounts: ReadonlyArray<ListedAccountJson>) =>
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

const list = commandOf(listAccounts, { print: accountTable, explain: moreAfter })

const change = commandOf(changeAccount, { print: (changed) => accountTable([changed]) })

/** `tilld accounts`: makes and lists accounts, and changes what they may do and their checkouts. */
export const accountsCommand = Command.make("accounts").pipe(
  Command.withDescription("Accounts"),
  Command.withSubcommands([create, list, change, shopCommand])
)
