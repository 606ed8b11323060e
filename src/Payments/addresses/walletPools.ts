/**
 * The address pools of all wallets whose extended public key is known, by the configuration or by an account. A pool is made
 * when it is first needed. `Addresses.ts` is the only caller.
 */
import { Effect, Redacted } from "effect"
import { walletBy, walletContext, walletsOf } from "../../Auth/AccountsRepo.ts"
import type { Mode } from "../../Domain/Chain.ts"
import type { Owner } from "../../Domain/Owner.ts"
import { WalletNotConfigured } from "../../Domain/PaymentErrors.ts"
import { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { type Db, Reader } from "../../Sql.ts"
import { AddressPool } from "./AddressPool.ts"
import type { Derive } from "./derivingThread.ts"
import { hdWallet } from "./hdWallet.ts"

export const makePools = Effect.fnUntraced(function* (
  derive: Derive,
  request: (what: "addresses" | "vetting") => void
) {
  const settings = yield* Settings
  const secrets = yield* Secrets
  const reader = yield* Reader
  /** By fingerprint: accounts that share an extended public key share the pool and the counter. */
  const pools = new Map<string, AddressPool>()

  const poolOf = (xpub: Redacted.Redacted<string>, mode: Mode): AddressPool => {
    const wallet = hdWallet(Redacted.value(xpub))
    const pool =
      pools.get(wallet.fingerprint) ?? new AddressPool(wallet, mode, derive, settings.payments.lookAhead, request)
    pools.set(wallet.fingerprint, pool)
    return pool
  }

  /** The pool that an owner's addresses come from. */
  const ofOwner = Effect.fnUntraced(function* (db: Db, { account, mode }: Owner) {
    const own = yield* walletsOf(db, account)
    const wallet = own.find((candidate) => candidate.mode === mode)
    const xpub =
      own.length === 0 ? settings.wallets[mode] : wallet && secrets.open(wallet.sealed, walletContext(account, mode))
    return xpub === undefined ? yield* new WalletNotConfigured({ mode }) : poolOf(xpub, mode)
  })

  /** The pool of a wallet; undefined where its key is no longer in the configuration or an account. */
  const byFingerprint = Effect.fnUntraced(function* (fingerprint: string) {
    const known = pools.get(fingerprint)
    if (known !== undefined) return known
    const own = yield* walletBy(reader, fingerprint)
    return own && poolOf(secrets.open(own.sealed, walletContext(own.account, own.mode)), own.mode)
  })

  const configured = (["live", "test"] as const).flatMap((mode) => {
    const xpub = settings.wallets[mode]
    return xpub === undefined ? [] : [poolOf(xpub, mode)]
  })

  return { configured, ofOwner, byFingerprint, all: () => [...pools.values()] }
})
