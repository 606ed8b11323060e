import { Effect, Redacted } from "effect"
import { walletBy, walletContext, walletsOf } from "../../Auth/AccountsRepo.ts"
import type { Owner } from "../../Domain/Account.ts"
import { modes } from "../../Domain/Chain.ts"
import { Secrets } from "../../Secrets.ts"
import { type HdWallet, hdWallet } from "../../Settings/hdWallet.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"

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
