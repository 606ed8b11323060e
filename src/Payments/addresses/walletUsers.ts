/** The wallets of the configuration and of accounts, by their users and by their fingerprints. */
import { Effect, Redacted } from "effect"
import { walletBy, walletContext, walletsOf, walletUsers } from "../../Auth/AccountsRepo.ts"
import type { Owner } from "../../Domain/Account.ts"
import { type Mode, modes } from "../../Domain/Chain.ts"
import { Secrets } from "../../Secrets.ts"
import { type HdWallet, hdWallet } from "../../Settings/hdWallet.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"

/** The configuration or an account, as the user of a wallet. */
export interface WalletUser {
  readonly fingerprint: string
  readonly mode: Mode
  /** For messages. */
  readonly name: string
}

/** The wallets of the configuration. */
export const configuredWallets = (wallets: SettingsShape["wallets"]): ReadonlyArray<WalletUser> =>
  modes.flatMap((mode): ReadonlyArray<WalletUser> => {
    const xpub = wallets[mode]
    return xpub === undefined
      ? []
      : [{ fingerprint: hdWallet(Redacted.value(xpub)).fingerprint, mode, name: `the configuration (wallets.${mode})` }]
  })

/** Who uses which wallet: the configuration, and accounts that have brought their own. */
export const allWalletUsers = Effect.gen(function* () {
  const { wallets } = yield* Settings
  const accounts = yield* walletUsers(yield* Reader)
  const own = accounts.map(
    ({ account, fingerprint, mode }): WalletUser => ({ fingerprint, mode, name: `account ${account} (${mode})` })
  )
  return [...configuredWallets(wallets), ...own]
})

const open = (xpub: Redacted.Redacted<string> | undefined): HdWallet | undefined =>
  xpub === undefined ? undefined : hdWallet(Redacted.value(xpub))

/** The wallet that an owner's addresses come from; undefined where there is none. */
export const walletOfOwner = Effect.fn("provenWallets.walletOfOwner")(function* ({ account, mode }: Owner) {
  const settings = yield* Settings
  const secrets = yield* Secrets
  const own = yield* walletsOf(yield* Reader, account)
  const wallet = own.find((candidate) => candidate.mode === mode)
  return open(
    own.length === 0 ? settings.wallets[mode] : wallet && secrets.open(wallet.sealed, walletContext(account, mode))
  )
})

/** The wallet of a fingerprint, of the configuration or of an account; undefined where no one has it. */
export const walletWith = Effect.fn("provenWallets.walletWith")(function* (fingerprint: string) {
  const { wallets } = yield* Settings
  const secrets = yield* Secrets
  const configured = modes.map((mode) => open(wallets[mode])).find((wallet) => wallet?.fingerprint === fingerprint)
  if (configured !== undefined) return configured
  const own = yield* walletBy(yield* Reader, fingerprint)
  return own && open(secrets.open(own.sealed, walletContext(own.account, own.mode)))
})
