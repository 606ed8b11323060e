import { Duration, Effect, Redacted } from "effect"
import { walletContext } from "../Auth/AccountsRepo.ts"
import { accountLimits, configuredLimits } from "../Auth/accountLimits.ts"
import { NotFound } from "../Auth/inputFields.ts"
import * as UsageRepo from "../Auth/UsageRepo.ts"
import { Accounts } from "../Auth.ts"
import type { Account } from "../Domain/Account.ts"
import { UnknownAccount, WalletInOtherMode } from "../Domain/AccountErrors.ts"
import { type Mode, modes } from "../Domain/Chain.ts"
import { newAccountId } from "../Domain/Ids.ts"
import { iso } from "../Domain/Timestamp.ts"
import { hdWallet } from "../Payments/addresses/hdWallet.ts"
import { Secrets } from "../Secrets.ts"
import { Settings, type SettingsShape } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import { defaultSecrets } from "../Webhooks/DefaultSecrets.ts"
import { SigningKeys } from "../Webhooks/SigningKeys.ts"
import type { SecretPair } from "../Webhooks/secretPair.ts"
import { administering, reading } from "./controlHandler.ts"
import * as Requests from "./controlRequests.ts"

const accountView = ({ createdAt, id, name, ownWallets }: Account) => ({
  id,
  name,
  createdAt: iso(createdAt),
  wallets: ownWallets.length === 0 ? ("shared" as const) : ownWallets
})

/** An account with what it has stored, and what it may do. */
const listed = (account: Account, usage: UsageRepo.Usage | undefined, settings: SettingsShape) => ({
  ...accountView(account),
  usedBytes: usage?.stored ?? 0,
  ...(usage?.quota === undefined ? {} : { quotaBytes: usage.quota }),
  ...accountLimits(account.terms, configuredLimits(settings))
})

export const listAccounts = reading(
  Requests.ListAccounts,
  Effect.fnUntraced(function* (page) {
    const accounts = yield* Accounts
    const { after } = page
    if (after && !(yield* accounts.exists(after))) {
      return yield* new NotFound({ message: UnknownAccount.of(after).message })
    }
    const settings = yield* Settings
    const usages = yield* UsageRepo.all(yield* Reader, settings.accounts.quotaBytes)
    const usageOf = new Map(usages.map((usage) => [usage.account, usage]))
    return (yield* accounts.list(page)).map((account) => listed(account, usageOf.get(account.id), settings))
  })
)

/** The audit log's row of a change of what an account may do; null: as configured. */
export const accountChange = ({ id, perHour, perMinute, quotaBytes }: Requests.ChangeAccount) => ({
  act: "accounts change",
  detail: {
    account: id,
    quotaBytes: quotaBytes === null ? "default" : quotaBytes === 0 ? "none" : quotaBytes,
    perMinute: perMinute === null ? "default" : perMinute,
    perHour: perHour === null ? "default" : perHour
  }
})

/** Changes what an account may do, for whoever administers the installation. */
export const changeAccount = Effect.fnUntraced(function* ({
  id,
  perHour,
  perMinute,
  quotaBytes
}: Requests.ChangeAccount) {
  const accounts = yield* Accounts
  const settings = yield* Settings
  const changed = yield* accounts.change(id, {
    ...(quotaBytes === undefined ? {} : { quotaBytes: quotaBytes ?? undefined }),
    ...(perMinute === undefined ? {} : { perMinute: perMinute ?? undefined }),
    ...(perHour === undefined ? {} : { perHour: perHour ?? undefined })
  })
  return listed(changed, yield* UsageRepo.of(yield* Reader, id, settings.accounts.quotaBytes), settings)
})

export const changeAccountHandler = administering(Requests.ChangeAccount, accountChange, (request) =>
  changeAccount(request)
)

/** Seals an extended public key for an account. Fails when the configuration uses that wallet in the other mode. */
const accountWallet = Effect.fnUntraced(function* (account: Account["id"], mode: Mode, xpub: string) {
  const { wallets } = yield* Settings
  const { seal } = yield* Secrets
  const { fingerprint } = hdWallet(xpub)
  const other = mode === "live" ? wallets.test : wallets.live
  if (other !== undefined && hdWallet(Redacted.value(other)).fingerprint === fingerprint) {
    return yield* WalletInOtherMode.of(mode)
  }
  return { mode, fingerprint, sealed: seal(xpub, walletContext(account, mode)) }
})

/** Extended public keys by mode. In a mode without one the account uses the configuration's wallet. */
export type GivenWallets = Requests.CreateAccount["wallets"]

/** The audit log's row of an account that is made. */
export const accountCreation = (account: Account["id"], name: string, wallets: GivenWallets) => ({
  act: "accounts create",
  detail: { account, name, ownWallets: modes.filter((mode) => wallets[mode] !== undefined) }
})

/** Makes an account. The keys are those that `walletIdentity` accepts. */
export const makeAccount = Effect.fnUntraced(function* (id: Account["id"], name: string, wallets: GivenWallets) {
  const accounts = yield* Accounts
  const own = yield* Effect.forEach(
    modes.flatMap((mode) => (wallets[mode] === undefined ? [] : [[mode, wallets[mode]] as const])),
    ([mode, xpub]) => accountWallet(id, mode, xpub),
    { concurrency: 1 }
  )
  return yield* accounts.create({ id, name, wallets: own })
})

export const createAccount = administering(
  Requests.CreateAccount,
  ({ name, wallets }) => accountCreation(newAccountId(), name, wallets),
  ({ name, wallets }, { account }) => Effect.map(makeAccount(account, name, wallets), accountView)
)

const mustExist = Effect.fnUntraced(function* (account: Account["id"]) {
  const accounts = yield* Accounts
  const exists = yield* accounts.exists(account)
  if (!exists) return yield* UnknownAccount.of(account)
})

const secretView = ({ current, previous }: SecretPair): Requests.SecretView => ({
  secret: Redacted.value(current),
  ...(previous === undefined
    ? {}
    : { previous: { secret: Redacted.value(previous.secret), until: iso(previous.until) } })
})

export const showSecret = administering(
  Requests.ShowSecret,
  ({ account, mode }) => ({ act: "webhooks secret", detail: { account, mode } }),
  Effect.fnUntraced(function* ({ account, mode }) {
    yield* mustExist(account)
    return secretView(yield* defaultSecrets({ account, mode }))
  })
)

export const rotateSecret = administering(
  Requests.RotateSecret,
  ({ account, mode, overlap }) => ({
    act: "webhooks secret --rotate",
    detail: { account, mode, overlap: Duration.format(overlap) }
  }),
  Effect.fnUntraced(function* ({ account, mode, overlap }) {
    yield* mustExist(account)
    const keys = yield* SigningKeys
    const rotated = Effect.catchTag(keys.rotate({ account, mode }, { overlap }), "SecretReplaced", Effect.die)
    return secretView(yield* rotated)
  })
)
