import { Effect, Redacted } from "effect"
import { walletUsers } from "../../Auth/AccountsRepo.ts"
import { type Mode, modes } from "../../Domain/Chain.ts"
import { hdWallet } from "../../Settings/hdWallet.ts"
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
