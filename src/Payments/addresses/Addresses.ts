/**
 * Hands out the receiving addresses of payments: each address to one payment only, and none that is known to have a history.
 *
 * Wallets are numbered (BIP-44 indexes). The numbering continues only where the index mark, a file outside the database,
 * proves that the database is the one that was last written here. Otherwise a newer copy may have been lost: the numbering
 * jumps ahead, and the skipped addresses are watched as those of lost payments. `Payments.create` is the caller;
 * `tilld addresses jump` lets the numbering jump by hand.
 */

import { Clock, Context, Data, Duration, Effect, Layer, Queue, Redacted } from "effect"
import { walletBy, walletContext, walletsOf } from "../../Auth/AccountsRepo.ts"
import { AddressHistory } from "../../Chains/balances/AddressHistory.ts"
import { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Owner } from "../../Domain/Account.ts"
import type { Mode } from "../../Domain/Chain.ts"
import { WalletNotConfigured } from "../../Domain/Payment.ts"
import { Secrets } from "../../Secrets.ts"
import { hdWallet } from "../../Settings/hdWallet.ts"
import { Settings } from "../../Settings.ts"
import { type Db, Reader, type StoreUnavailable, Tx, Writer } from "../../Sql.ts"
import { Workers } from "../../Telemetry/Workers.ts"
import { AddressPool, type Derive, derivingThread, makeVetter } from "./AddressPool.ts"
import { deriveSkipped, type Jumped, openNumbering, perform } from "./numbering.ts"
import * as Repo from "./WalletsRepo.ts"
import { allWalletUsers } from "./walletUsers.ts"

/** One wallet is used in both modes: a test payment could get the address of a live one. */
class WalletInBothModes extends Data.TaggedError("WalletInBothModes")<{ readonly message: string }> {}

/** Refuses to start with a wallet that is used in both modes. Keys are not shown. */
export const refuseSharedWallets = Layer.effectDiscard(
  Effect.gen(function* () {
    const users = yield* allWalletUsers
    const shared = users.flatMap((live) =>
      users.flatMap((test) =>
        live.mode === "live" && test.mode === "test" && live.fingerprint === test.fingerprint ? [[live, test]] : []
      )
    )
    if (shared.length === 0) return
    const pairs = shared.map((pair) => pair.map(({ name }) => name).join(" and "))
    return yield* new WalletInBothModes({
      message:
        `One wallet is used in both modes by ${pairs.join("; by ")}: test payments must never share addresses with live ` +
        "ones. Give wallets.live or wallets.test another account's extended public key"
    })
  })
)

// * The address pools of all wallets whose extended public key is known, by the configuration or by an account. A pool is made
// when it is first needed. `Addresses.ts` is the only caller.

const makePools = Effect.fnUntraced(function* (derive: Derive, request: (what: "addresses" | "vetting") => void) {
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

/** Pause between two rounds of vetting, so that a burst of payments does not become a burst of calls. */
const vetPace = Duration.seconds(1)

/** The wallet and index that a payment's address is derived from. */
export interface AddressSource {
  /** The wallet's fingerprint. */
  readonly wallet: string
  readonly index: number
}

/** A power cut may lose this much of the mark: less time than it takes to restore a copy of the database. */
const syncInterval = Duration.seconds(1)

const unknownWallet = ({ fingerprint }: AddressPool): never => {
  throw new Error(`wallet ${fingerprint} is not in the store`)
}

export interface ReceivingAddress extends AddressSource {
  /** EIP-55 form. */
  readonly address: string
}

export class Addresses extends Context.Tag("tilld/Payments/Addresses")<
  Addresses,
  {
    /** Called before the transaction of `take`: waits until the owner's next addresses are vetted, five seconds at most. */
    readonly ready: (owner: Owner) => Effect.Effect<void, WalletNotConfigured | StoreUnavailable>
    /** Takes the next address of the owner's wallet, if the transaction commits. */
    readonly take: (owner: Owner) => Effect.Effect<ReceivingAddress, WalletNotConfigured | StoreUnavailable, Tx>
    /** Makes the numbering of all wallets jump ahead, for an operator who knows more than the mark. */
    readonly jump: (by: number) => Effect.Effect<ReadonlyArray<Jumped>, StoreUnavailable>
    /** The worker that derives and vets addresses ahead of their use. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.scoped(
    Addresses,
    Effect.gen(function* () {
      const writer = yield* Writer
      const reader = yield* Reader
      const history = yield* AddressHistory
      const matchSet = yield* WatchedAddresses
      const bells = {
        addresses: yield* Queue.sliding<void>(1),
        vetting: yield* Queue.sliding<void>(1),
        mark: yield* Queue.sliding<void>(1)
      }
      const ring = (what: keyof typeof bells) => void bells[what].unsafeOffer(undefined)
      const pools = yield* makePools(yield* derivingThread(), ring)
      const numbered = yield* openNumbering(() => ring("mark"))
      /** By account and mode. An account's wallet is decided when the account is created. */
      const owners = new Map<string, AddressPool>()
      const keyOf = ({ account, mode }: Owner) => `${mode}:${account}`

      const resolve = Effect.fnUntraced(function* (owner: Owner) {
        const tx = yield* Tx
        const pool = yield* pools.ofOwner(tx, owner)
        yield* numbered.enter(pool)
        yield* numbered.follow
        tx.afterCommit(() => owners.set(keyOf(owner), pool))
        return pool
      })

      const nextIndex = (pool: AddressPool) =>
        Effect.flatMap(Repo.nextIndex(pool.fingerprint), (index) =>
          index === undefined
            ? // It has to jump first: its key is new or has come back, and a lost copy of the database may have used it.
              Effect.zipRight(
                perform(matchSet, pool),
                Effect.map(Repo.nextIndex(pool.fingerprint), (jumped) => jumped ?? unknownWallet(pool))
              )
            : Effect.succeed(index)
        )

      const take = Effect.fnUntraced(function* (owner: Owner) {
        const tx = yield* Tx
        const pool = owners.get(keyOf(owner)) ?? (yield* resolve(owner))
        let index = yield* nextIndex(pool)
        while (pool.hasHistory(index)) index = yield* nextIndex(pool)
        tx.afterCommit(() => {
          numbered.note(pool.fingerprint, index + 1)
          pool.passed(index)
        })
        tx.afterCommit(numbered.write)
        return { address: pool.address(index), wallet: pool.fingerprint, index }
      })

      /** Lets all wallets jump by `by` indexes, in addition to the jumps that they owe. */
      const jump = Effect.fn("Addresses.jump")(function* (by: number) {
        // A wallet without its key hands out nothing. Should the key come back, it jumps then.
        const known = yield* Effect.forEach(
          yield* Repo.all(reader),
          (row) =>
            Effect.map(pools.byFingerprint(row.fingerprint), (pool) => (pool === undefined ? [] : [{ pool, row }])),
          { concurrency: 1 }
        )
        const derived = yield* Effect.forEach(
          known.flat(),
          ({ pool, row }) => Effect.map(deriveSkipped(pool, row, by), (skipped) => ({ pool, skipped })),
          { concurrency: 1 }
        )
        return yield* writer.write(
          Effect.gen(function* () {
            yield* Repo.oweJump(by)
            const all = yield* Effect.forEach(derived, ({ pool, skipped }) => perform(matchSet, pool, skipped), {
              concurrency: 1
            })
            yield* numbered.follow
            return all
          })
        )
      })

      /** Pools of wallets that another database has used further: those of the configuration and of all accounts. */
      const overtaken = yield* Effect.forEach(numbered.overtaken(), pools.byFingerprint, { concurrency: 1 })
      yield* writer.write(
        Effect.gen(function* () {
          yield* numbered.begin
          for (const pool of new Set([...pools.configured, ...overtaken])) {
            if (pool !== undefined) yield* numbered.enter(pool)
          }
          yield* numbered.follow
        })
      )
      // Jumps that are owed are done before any address is taken, so that all skipped addresses are watched from the start.
      yield* jump(0)

      const vetter = yield* makeVetter(history)

      const health = yield* Workers
      // Without its mark a copy that is put back would hand out addresses twice.
      health.condition("addresses", numbered.failure)
      const alive = health.worker("addresses", syncInterval)
      const refill = Effect.gen(function* () {
        yield* Queue.take(bells.addresses)
        for (const pool of pools.all()) yield* alive(pool.refill)
      }).pipe(Effect.forever)

      const vetAll = Effect.gen(function* () {
        yield* Queue.take(bells.vetting)
        const pause = yield* vetter.round(pools.all())
        if (pause !== undefined) ring("vetting")
        yield* Clock.sleep(pause ?? vetPace)
      }).pipe(Effect.forever)

      const syncMark = Effect.gen(function* () {
        yield* Queue.take(bells.mark)
        yield* alive(numbered.sync)
        yield* Clock.sleep(syncInterval)
      }).pipe(Effect.forever)

      const ready = Effect.fnUntraced(function* (owner: Owner) {
        if (owners.has(keyOf(owner))) return
        const pool = yield* pools.ofOwner(reader, owner)
        if (numbered.overtaken().includes(pool.fingerprint)) {
          // Of an account that was created since the start. `take` would derive the skipped addresses in its transaction.
          yield* writer.write(numbered.enter(pool))
          yield* jump(0)
        }
        const row = yield* Repo.byFingerprint(reader, pool.fingerprint)
        const { jump: ahead } = row ?? (yield* Repo.numbering(reader))
        pool.startAt((row?.next_index ?? 0) + ahead)
        yield* vetter.first(pool)
      })

      const run = Effect.all([refill, vetAll, syncMark], { concurrency: "unbounded", discard: true }).pipe(
        Effect.zipRight(Effect.never),
        Effect.annotateLogs({ service: "addresses" })
      )

      return { ready, take, jump, run }
    })
  )
}
