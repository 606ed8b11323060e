import { Clock, Context, Duration, Effect, Layer, Queue, Redacted, Runtime } from "effect"
import { walletBy, walletContext, walletsOf } from "../Auth/AccountsRepo.ts"
import { History } from "../Chains/History.ts"
import { MatchSet } from "../Chains/MatchSet.ts"
import { type Mode, networkKey } from "../Domain/Chain.ts"
import type { Owner } from "../Domain/Owner.ts"
import { WalletNotConfigured } from "../Domain/PaymentErrors.ts"
import { Secrets } from "../Secrets.ts"
import { Settings } from "../Settings.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { AddressPool } from "./AddressPool.ts"
import { derivingThread } from "./derivingThread.ts"
import { hdWallet } from "./hdWallet.ts"
import { openIndexMark } from "./IndexMark.ts"
import type { AddressSource } from "./PaymentsRepo.ts"
import * as Repo from "./WalletsRepo.ts"

/** How far numbering jumps when nothing tells how many addresses an older copy of the database had handed out. */
const blindJump = 1000
/** When a chain could not be asked about addresses' history, it is asked again after this, then after twice as long. */
const vetAgain = Duration.minutes(1)
const longestVetAgain = Duration.hours(1)
/** Between two rounds of questions, so that a burst of payments does not become a burst of calls. */
const vetPace = Duration.seconds(1)

export interface ReceivingAddress extends AddressSource {
  /** EIP-55 form. */
  readonly address: string
}

/** Hands out receiving addresses: one a payment, never one twice, none known to have a history. */
export class Addresses extends Context.Tag("tilld/Payments/Addresses")<
  Addresses,
  {
    /** The next address of the owner's wallet. It is taken only if the transaction commits. */
    readonly take: (
      tx: Tx["Type"],
      owner: Owner
    ) => Effect.Effect<ReceivingAddress, WalletNotConfigured | StoreUnavailable>
    /** The worker that derives and vets addresses ahead of their use. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.scoped(
    Addresses,
    Effect.gen(function* () {
      const settings = yield* Settings
      const secrets = yield* Secrets
      const writer = yield* Writer
      const reader = yield* Reader
      const history = yield* History
      const matchSet = yield* MatchSet
      const fork = Runtime.runFork(yield* Effect.runtime<never>())
      const mark = yield* openIndexMark(settings.database.path, (cause) => {
        fork(
          Effect.logError("the file beside the database that remembers handed out addresses cannot be written", cause)
        )
      })
      const derive = yield* derivingThread()
      /** By fingerprint: accounts that share an extended public key share the pool and the counter. */
      const pools = new Map<string, AddressPool>()
      /** By account and mode; what an account uses is decided when it is made. */
      const owners = new Map<string, AddressPool>()
      const bells = { addresses: yield* Queue.sliding<void>(1), vetting: yield* Queue.sliding<void>(1) }
      const ring = (what: keyof typeof bells) => void bells[what].unsafeOffer(undefined)

      const poolOf = (xpub: string, mode: Mode): AddressPool => {
        const wallet = hdWallet(xpub)
        const pool = pools.get(wallet.fingerprint) ?? new AddressPool(wallet, mode, derive, ring)
        pools.set(wallet.fingerprint, pool)
        return pool
      }

      /** Where numbering goes on: after a restored older copy where the file beside it says, or far enough ahead without it. */
      const goesOnAt = (fingerprint: string, from: number): number =>
        Math.max(from, mark.next(fingerprint) ?? (from > 0 ? from + blindJump : 0))

      /** Lets numbering jump over `skipped`, the addresses from the index `from` on, and has them watched. */
      const jump = Effect.fnUntraced(function* (pool: AddressPool, from: number, skipped: ReadonlyArray<string>) {
        const tx = yield* Tx
        const { fingerprint, mode } = pool
        const to = from + skipped.length
        yield* Repo.jumpTo(fingerprint, to)
        yield* Repo.keepGap(fingerprint, mode, from, skipped, yield* Clock.currentTimeMillis)
        tx.afterCommit(() => {
          for (const address of skipped) matchSet.add(mode, address)
        })
        const why =
          mark.next(fingerprint) === undefined
            ? "the file beside the database that remembers handed out addresses is missing or unreadable"
            : "the database is older than the last address handed out"
        yield* Effect.logWarning(`address numbering jumps ahead, and what it skips is watched: ${why}`).pipe(
          Effect.annotateLogs({ wallet: fingerprint, from, to })
        )
      })

      const resolve = Effect.fnUntraced(function* (tx: Tx["Type"], owner: Owner, key: string) {
        const own = yield* walletsOf(tx, owner.account)
        const wallet = own.find((candidate) => candidate.mode === owner.mode)
        const xpub =
          own.length === 0
            ? settings.wallets[owner.mode]
            : wallet && secrets.open(wallet.sealed, walletContext(owner.account, owner.mode))
        if (xpub === undefined) return yield* new WalletNotConfigured({ mode: owner.mode })
        const pool = poolOf(Redacted.value(xpub), owner.mode)
        const from = yield* Repo.ensure(tx, pool.fingerprint)
        const to = goesOnAt(pool.fingerprint, from)
        // A key that was given again to a copy of the database that had lost it: nobody could tell its addresses before.
        if (to > from) yield* Effect.provideService(jump(pool, from, pool.rangeAtOnce(from, to)), Tx, tx)
        // At once: another account's first payment in the same commit must not take the file for a missing one.
        mark.note(pool.fingerprint, to)
        tx.afterCommit(() => owners.set(key, pool))
        return pool
      })

      const take = Effect.fnUntraced(function* (tx: Tx["Type"], owner: Owner) {
        const key = `${owner.mode}:${owner.account}`
        const pool = owners.get(key) ?? (yield* resolve(tx, owner, key))
        let index = yield* Repo.nextIndex(tx, pool.fingerprint)
        while (pool.hasHistory(index)) index = yield* Repo.nextIndex(tx, pool.fingerprint)
        tx.afterCommit(() => {
          mark.note(pool.fingerprint, index + 1)
          pool.passed(index)
        })
        tx.afterCommit(mark.write)
        return { address: pool.address(index), wallet: pool.fingerprint, index }
      })

      /** The pool of a wallet that is in use; undefined of one whose key nobody has given any more. */
      const poolBy = Effect.fnUntraced(function* (fingerprint: string) {
        const known = pools.get(fingerprint)
        if (known !== undefined) return known
        const own = yield* walletBy(reader, fingerprint)
        if (own === undefined) return undefined
        const xpub = secrets.open(own.sealed, walletContext(own.account, own.mode))
        return poolOf(Redacted.value(xpub), own.mode)
      })

      /** Before anything is taken, so that what is skipped is watched whether its account is paid again or not. */
      const catchUp = Effect.fnUntraced(function* (fingerprint: string, from: number) {
        const pool = yield* poolBy(fingerprint)
        // Nobody takes from it. Should its key come back, it is looked at then.
        if (pool === undefined) return
        const to = goesOnAt(fingerprint, from)
        // Before the transaction: thousands take their time.
        const skipped = yield* pool.range(from, to)
        yield* writer.write(
          Effect.gen(function* () {
            const tx = yield* Tx
            if (to > from) yield* jump(pool, from, skipped)
            tx.afterCommit(() => {
              mark.note(fingerprint, to)
              pool.startAt(to)
            })
            tx.afterCommit(mark.write)
          })
        )
      })

      yield* writer.write(
        Effect.gen(function* () {
          for (const mode of ["live", "test"] as const) {
            const xpub = settings.wallets[mode]
            if (xpub !== undefined) yield* Repo.ensure(yield* Tx, poolOf(Redacted.value(xpub), mode).fingerprint)
          }
        })
      )
      for (const { fingerprint, next_index } of yield* Repo.all(reader)) yield* catchUp(fingerprint, next_index)

      /** Gives the chains that could not be asked. */
      const vet = Effect.fn("Addresses.vet")(function* (pool: AddressPool) {
        const unvetted = pool.unvetted()
        if (unvetted.length === 0) return []
        const { unreachable, used } = yield* history.vet(
          pool.mode,
          unvetted.map(({ address }) => address)
        )
        for (const { address, index } of unvetted.filter((candidate) => used.has(candidate.address))) {
          pool.skip(index)
          yield* Effect.logWarning("an address with a history is skipped").pipe(
            Effect.annotateLogs({ wallet: pool.fingerprint, index, address })
          )
        }
        if (unreachable.length === 0) pool.vetted(unvetted)
        return unreachable.map((chain) => networkKey({ chain, mode: pool.mode }))
      })

      const refill = Effect.gen(function* () {
        yield* Queue.take(bells.addresses)
        for (const pool of [...pools.values()]) yield* pool.refill
      }).pipe(Effect.forever)

      /** Rounds in a row in which a chain could not be asked. */
      let incomplete = 0

      const vetAll = Effect.gen(function* () {
        yield* Queue.take(bells.vetting)
        const missing = yield* Effect.forEach([...pools.values()], vet, { concurrency: 1 })
        const chains = [...new Set(missing.flat())]
        if (chains.length === 0) {
          incomplete = 0
          return yield* Clock.sleep(vetPace)
        }
        if (incomplete === 0) {
          yield* Effect.logWarning("addresses are handed out without knowing their history on every chain").pipe(
            Effect.annotateLogs({ unreachable: chains.join(", ") })
          )
        }
        // Every chain is asked again, those that have answered too: not too often.
        const pause = Duration.min(Duration.times(vetAgain, 2 ** Math.min(incomplete, 10)), longestVetAgain)
        incomplete++
        ring("vetting")
        yield* Clock.sleep(pause)
      }).pipe(Effect.forever)

      const run = Effect.all([refill, vetAll], { concurrency: "unbounded", discard: true }).pipe(
        Effect.zipRight(Effect.never),
        Effect.annotateLogs({ service: "addresses" })
      )

      return { take, run }
    })
  )
}
