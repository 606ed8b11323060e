/** What an operator does with accounts: list them, make one with its wallets, change what one may do. */
import { Effect, Either, ParseResult, Redacted, Schema } from "effect"
import {
  type Account,
  AccountExists,
  highestQuota,
  leastQuota,
  UnknownAccount,
  WalletInOtherMode
} from "../Domain/Account.ts"
import { highestLimits } from "../Domain/ApiKey.ts"
import { Mode, modes } from "../Domain/Chain.ts"
import { AccountId, NewAccountId, newAccountId } from "../Domain/Ids.ts"
import { must } from "../lib/annotations.ts"
import { Moment } from "../lib/moment.ts"
import { parseBytes } from "../lib/quantities.ts"
import {
  accountRule,
  GivenName,
  maybe,
  NotFound,
  nameLength,
  notedRate,
  otherwise,
  pageFields,
  rateField
} from "../Operations/inputFields.ts"
import { operation, withFlag } from "../Operations/operation.ts"
import { Secrets } from "../Secrets.ts"
import { hdWallet, walletIdentity } from "../Settings/hdWallet.ts"
import { keyInValue } from "../Settings/keyMaterial.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql/Db.ts"
import { Accounts } from "./Accounts.ts"
import * as AccountsRepo from "./AccountsRepo.ts"
import { accountLimits, configuredLimits } from "./rateLimitWindows.ts"
import type { Usage } from "./UsageRepo.ts"
import * as UsageRepo from "./UsageRepo.ts"

/** Fails unless there is such an account. */
export const mustExist = Effect.fnUntraced(function* (account: AccountId) {
  const accounts = yield* Accounts
  if (!(yield* accounts.exists(account))) return yield* UnknownAccount.of(account)
})

const summary = {
  id: Schema.String,
  name: Schema.String,
  createdAt: Moment,
  /** The modes in which the account has its own wallet. In the others it uses the configuration's. */
  wallets: Schema.Union(Schema.Literal("shared"), Schema.Array(Mode))
}

const summaryOf = ({ createdAt, id, name, ownWallets }: Account) => ({
  ...{ id, name, createdAt },
  wallets: ownWallets.length === 0 ? ("shared" as const) : ownWallets
})

/** An account with what it has stored, in bytes, and what it may do; without `quotaBytes` it has no quota. */
const ListedAccount = Schema.Struct({
  ...summary,
  usedBytes: Schema.Number,
  quotaBytes: Schema.optional(Schema.Number),
  /** Requests of all its keys together, in each mode. */
  perMinute: Schema.Number,
  perHour: Schema.Number
})
export type ListedAccountJson = typeof ListedAccount.Encoded

const listed = (account: Account, usage: Usage | undefined, settings: Parameters<typeof configuredLimits>[0]) => ({
  ...summaryOf(account),
  usedBytes: usage?.stored ?? 0,
  quotaBytes: usage?.quota,
  ...accountLimits(account.terms, configuredLimits(settings))
})

export const listAccounts = operation({
  name: "accounts list",
  summary:
    "Show all accounts, whether each uses its own wallets or shares the configuration's, what it has stored of its quota, and its rate limits",
  input: pageFields("accounts", 100),
  output: Schema.Array(ListedAccount),
  refusals: [NotFound],
  run: Effect.fnUntraced(function* (page) {
    const accounts = yield* Accounts
    if (page.after && !(yield* accounts.exists(page.after))) {
      return yield* new NotFound({ message: UnknownAccount.of(page.after).message })
    }
    const settings = yield* Settings
    const usages = yield* UsageRepo.all(yield* Reader, settings.accounts.quotaBytes)
    const usageOf = new Map(usages.map((usage) => [usage.account, usage]))
    return (yield* accounts.list(page)).map((account) => listed(account, usageOf.get(account.id), settings))
  })
})

const quotaRule = "be a size such as 500MB or 5GB, at least 1MB, or none"

/** Bytes, or a size as text; 0 for none. */
const Quota = must(
  quotaRule,
  Schema.transformOrFail(Schema.Union(Schema.String, Schema.Number), Schema.Number, {
    strict: true,
    decode: (given, _, ast) => {
      const bytes = given === "none" ? 0 : typeof given === "string" ? parseBytes(given) : given
      return bytes === 0 ||
        (bytes !== undefined && Number.isInteger(bytes) && bytes >= leastQuota && bytes <= highestQuota)
        ? ParseResult.succeed(bytes)
        : ParseResult.fail(new ParseResult.Type(ast, given))
    },
    encode: ParseResult.succeed
  })
)

export const changeAccount = operation({
  name: "accounts change",
  summary: "Change an account's quota or its rate limits. In force once this returns",
  input: {
    id: withFlag(must(accountRule, AccountId), {
      about: "As tilld accounts list shows it: acct_…, or default",
      value: "ID",
      isArgument: true
    }),
    quota: withFlag(maybe(Schema.NullOr(Quota)), {
      about: "What it may store, such as 5GB; none: as much as the disk holds; default: as configured",
      value: "SIZE",
      words: { default: null }
    }),
    perMinute: rateField("a minute that all its keys may make together in each mode", highestLimits.perMinute),
    perHour: rateField("an hour that all its keys may make together in each mode", highestLimits.perHour)
  },
  check: ({ perHour, perMinute, quota }) =>
    quota === undefined && perMinute === undefined && perHour === undefined
      ? "Say what to change: the quota, or the limit of a minute or an hour"
      : undefined,
  output: ListedAccount,
  refusals: [UnknownAccount],
  audit: ({ id: account, perHour, perMinute, quota }) => ({
    account,
    quotaBytes: quota === 0 ? "none" : notedRate(quota),
    perMinute: notedRate(perMinute),
    perHour: notedRate(perHour)
  }),
  run: Effect.fnUntraced(function* ({ id, perHour, perMinute, quota }) {
    const accounts = yield* Accounts
    const changed = yield* accounts.change(id, {
      ...(quota === undefined ? {} : { quotaBytes: quota ?? undefined }),
      ...(perMinute === undefined ? {} : { perMinute: perMinute ?? undefined }),
      ...(perHour === undefined ? {} : { perHour: perHour ?? undefined })
    })
    const settings = yield* Settings
    return listed(changed, yield* UsageRepo.of(yield* Reader, id, settings.accounts.quotaBytes), settings)
  })
})

/** An extended public key. What is wrong with it never repeats it: it may be a private key. */
const Xpub = Schema.transformOrFail(Schema.String, Schema.String, {
  strict: true,
  decode: (text, _, ast) => {
    const secret = keyInValue(text)
    if (secret !== undefined) {
      const detail = `was given what looks like ${secret}, which is not shown here: tilld must never have one. Treat it as exposed`
      return ParseResult.fail(new ParseResult.Type(ast, "", detail))
    }
    return walletIdentity(text) === undefined
      ? ParseResult.fail(
          new ParseResult.Type(ast, "", "must be the extended public key (xpub…) of an account, m/44'/60'/n'")
        )
      : ParseResult.succeed(text)
  },
  encode: ParseResult.succeed
})

const xpub = (mode: Mode) =>
  withFlag(maybe(Xpub), {
    about: `The extended public key of its ${mode} wallet`,
    isFile: true,
    value: "FILE"
  })

type GivenWallets = { readonly [Field in "liveXpub" | "testXpub"]?: string }
const walletsOf = ({ liveXpub: live, testXpub: test }: GivenWallets) => ({ live, test })

export const createAccount = operation({
  name: "accounts create",
  summary: "Make an account, which owns keys, payments and webhooks, and print its id",
  input: {
    id: otherwise(
      must("be the id of a new account, acct_ and 22 random characters, or absent", NewAccountId),
      newAccountId
    ),
    name: withFlag(GivenName, { about: `What the account is called, up to ${nameLength} characters`, value: "TEXT" }),
    liveXpub: xpub("live"),
    testXpub: xpub("test"),
    sharedWallet: withFlag(maybe(Schema.Boolean), { about: "Its payments go to the wallets of the configuration" })
  },
  check: ({ liveXpub, sharedWallet = false, testXpub }) =>
    sharedWallet === (liveXpub === undefined && testXpub === undefined)
      ? undefined
      : "Give either the shared wallet, or an extended public key for live, for test or for both",
  output: Schema.Struct(summary),
  refusals: [AccountExists, WalletInOtherMode],
  audit: ({ id, name, ...given }) => ({
    account: id,
    name,
    ownWallets: modes.filter((mode) => walletsOf(given)[mode] !== undefined)
  }),
  run: Effect.fnUntraced(function* ({ id, name, ...given }) {
    const configured = (yield* Settings).wallets
    const { seal } = yield* Secrets
    /** Seals a wallet. Fails where the configuration uses it in the other mode. */
    const sealed = (mode: Mode, key: string) => {
      const { fingerprint } = hdWallet(key)
      const other = mode === "live" ? configured.test : configured.live
      return other !== undefined && hdWallet(Redacted.value(other)).fingerprint === fingerprint
        ? Either.left(WalletInOtherMode.of(mode))
        : Either.right({ mode, fingerprint, sealed: seal(key, AccountsRepo.walletContext(id, mode)) })
    }
    const keys = walletsOf(given)
    const wallets = yield* Either.all(
      modes.flatMap((mode) => (keys[mode] === undefined ? [] : [sealed(mode, keys[mode])]))
    )
    const accounts = yield* Accounts
    return summaryOf(yield* accounts.create({ id, name, wallets }))
  })
})
