/**
 * Decides at each start whether the address numbering may continue, and keeps the index mark up to date while the daemon
 * runs. It may continue where the mark has the token of the database's last start and no index ahead of the database's;
 * otherwise every wallet has to jump. A wallet that another database has used further jumps too, see `IndexMark.ts`.
 * `Addresses.ts` is the only caller.
 *
 * A jump skips indexes that a lost newer copy of the database may have handed out, and the skipped addresses are watched.
 */

import { randomUUID } from "node:crypto"
import { Clock, Context, Duration, Effect, Runtime } from "effect"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import { Settings } from "../../Settings.ts"
import { Reader, StoreHistory, StoreUnusable, Tx, Writer } from "../../Sql.ts"
import type { AddressPool } from "./AddressPool.ts"
import { blindJump, furthestIn, furthestOf, type Mark, openIndexMark, overtakenIn, unitFolder } from "./IndexMark.ts"
import * as Repo from "./WalletsRepo.ts"

/** `blindJump`; a simulation that hands out few addresses watches fewer. */
export class BlindJump extends Context.Reference<BlindJump>()("tilld/Payments/BlindJump", {
  defaultValue: () => blindJump
}) {}

/** A folder that may have a further mark of the database. */
export class UnitFolder extends Context.Reference<UnitFolder>()("tilld/Payments/UnitFolder", {
  defaultValue: () => unitFolder
}) {}

/** What the database knows: its token, and each wallet's next index after the jump that it owes. */
export interface KnownWallets {
  readonly token: string
  readonly wallets: Mark["wallets"]
}

/** The next index of each wallet, by fingerprint. */
export const nextOf = (rows: ReadonlyArray<Repo.WalletRow>): Mark["wallets"] =>
  Object.fromEntries(rows.map(({ fingerprint, jump, next_index }) => [fingerprint, next_index + jump]))

/**
 * Why the mark does not prove that the database is the one that was last written here; undefined where it does: the mark has
 * the token of the database's last start and is not ahead of it. A crash can only leave the mark behind.
 *
 * @param furthest what all marks of the database have
 */
export const doubtOf = (
  { token, wallets }: KnownWallets,
  mark: Mark | undefined,
  furthest = mark?.wallets ?? {}
): string | undefined => {
  if (Object.entries(furthest).some(([wallet, next]) => next > (wallets[wallet] ?? 0))) {
    return "the database is older than the last address handed out: a copy was restored"
  }
  if (mark === undefined) {
    const isFirst = token === "" && Object.keys(wallets).length === 0
    return isFirst ? undefined : "its mark is missing or unreadable, so that this may be an older copy of the database"
  }
  return mark.tokens.includes(token)
    ? undefined
    : "its mark is of another start: a copy of the database was restored, or has run elsewhere"
}

const moved = "moved to "

/** The token of a store that goes on elsewhere, in a copy: no start may hand out its addresses again. */
export const movedTo = (store: string): string => `${moved}${store}`

/** Refuses a store that was moved. To restore a backup of it renews its token. */
export const refuseMoved = (token: string): Effect.Effect<void, StoreUnusable> =>
  token.startsWith(moved)
    ? new StoreUnusable({
        message: `This store was moved to ${token.slice(moved.length)} by tilld store copy, and goes on there: name that one in [database]. docs/two-machines.md says how to use this one all the same`
      })
    : Effect.void

/**
 * The numbering of the database and its mark, for the lifetime of a daemon.
 *
 * Each start makes a token. It is written to the mark beside the last one, then to the database, and then to the mark alone:
 * whenever a crash comes, the mark has the database's token.
 *
 * @param changed called after each write of the mark: a power cut loses what `sync` has not brought to disk
 */
export const openNumbering = Effect.fnUntraced(function* (changed: () => void) {
  const { database, payments } = yield* Settings
  const blind = yield* BlindJump
  const fork = Runtime.runFork(yield* Effect.runtime<never>())
  const folders = [database.markFolder, yield* UnitFolder]
  const found = furthestIn(folders, database.path)
  const mark = yield* openIndexMark(database, (cause) => {
    fork(Effect.logError("the index mark of the address numbering cannot be written", cause))
  })
  const history = yield* StoreHistory
  const token = history ?? randomUUID()
  const reader = yield* Reader
  const { token: last } = yield* Repo.numbering(reader)
  yield* refuseMoved(last)
  const known = nextOf(yield* Repo.all(reader))
  // A node that worked long ago has an old mark: of a server its history says whether the numbering may continue.
  const proof = history === undefined ? mark.found : { tokens: ["", history], wallets: found, database: database.path }
  const doubt = doubtOf({ token: last, wallets: known }, proof, found)
  const overtaken = new Map(overtakenIn(folders, database.path, furthestOf([known, found])))
  yield* mark.begin(doubt === undefined ? [last, token] : [token], found)

  let wallets: Mark["wallets"] = found
  const write = () => {
    mark.write([token], wallets)
    changed()
  }

  /** A lost copy's payments can be paid for as long as addresses are watched after their payment's end. */
  const forgetJump = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Repo.forgetJump(now - Duration.toMillis(payments.lateWindow))
  )

  /** In the start's transaction: stores the token, and the jumps where continuity is not proven. */
  const begin = Effect.gen(function* () {
    yield* Repo.renewToken(token)
    yield* forgetJump
    if (doubt === undefined) return
    yield* Effect.forEach(Object.entries(found), ([wallet, next]) => Repo.oweJumpTo(wallet, next), {
      concurrency: 1,
      discard: true
    })
    yield* Repo.oweJump(blind)
    yield* Effect.logWarning(`address numbering cannot be proven to continue: ${doubt}`).pipe(
      Effect.annotateLogs({ jump: blind, mark: database.markFolder })
    )
  })

  /**
   * Adds the wallet if it is not known. It has to jump where another database has used it further: once in this process, since
   * the marks of others are read at its start.
   */
  const enter = Effect.fnUntraced(function* (pool: Parameters<typeof Repo.ensure>[0]) {
    const tx = yield* Tx
    yield* forgetJump
    yield* Repo.ensure(pool)
    const other = overtaken.get(pool.fingerprint)
    if (other === undefined) return
    yield* Repo.oweJumpTo(other.wallet, other.next + blind)
    tx.afterCommit(() => overtaken.delete(other.wallet))
    yield* Effect.logWarning(
      "another database has handed out addresses of a wallet: the numbering goes on beyond them; point database.path back, if this is not meant"
    ).pipe(Effect.annotateLogs({ wallet: other.wallet, database: other.database, from: other.next, jump: blind }))
  })

  /** Writes the wallets' indexes to the mark once the transaction commits. */
  const follow = Effect.gen(function* () {
    const tx = yield* Tx
    const rows = yield* Repo.all(tx)
    tx.afterCommit(() => {
      wallets = nextOf(rows)
      write()
    })
  })

  /** Records a wallet's next index, without writing the mark. Commands that ran among each other come in any order. */
  const note = (wallet: string, next: number) => {
    wallets = { ...wallets, [wallet]: Math.max(next, wallets[wallet] ?? 0) }
  }

  /** Syncs the mark. One that could not be written is written again, also where no address is taken. */
  const sync = Effect.zipRight(
    mark.sync,
    Effect.sync(() => {
      if (mark.failure() !== undefined) write()
    })
  )

  return { begin, enter, overtaken: () => [...overtaken.keys()], follow, note, write, sync, failure: mark.failure }
})

/** A wallet whose numbering has jumped ahead. */
export interface Jumped {
  /** The wallet's fingerprint. */
  readonly wallet: string
  /** The next index before, and now. */
  readonly from: number
  readonly next: number
}

/** Where no daemon runs, a jump is only stored. The next start derives the skipped addresses and watches them. */
export const noteJump = Effect.fn("Addresses.noteJump")(function* (by: number) {
  const before = yield* Repo.all(yield* Reader)
  yield* (yield* Writer).write(Repo.oweJump(by))
  return before.map(({ fingerprint, jump, next_index }): Jumped => {
    return { wallet: fingerprint, from: next_index + jump, next: next_index + jump + by }
  })
})

/** Addresses that were derived before the transaction, from the index `from` on. */
export interface Derived {
  readonly from: number
  readonly addresses: ReadonlyArray<string>
}

/** Derives the addresses that the wallet has to skip, and `by` more, before the transaction: thousands take long. */
export const deriveSkipped = Effect.fnUntraced(function* (
  pool: AddressPool,
  { jump, next_index: from }: Repo.WalletRow,
  by: number
) {
  return { from, addresses: yield* pool.range(from, from + jump + by) } satisfies Derived
})

/**
 * Lets a wallet jump as far as it has to, in the transaction, and has the skipped addresses watched once it commits.
 * Addresses that are not among `derived` are derived here.
 */
export const perform = Effect.fnUntraced(function* (
  matchSet: WatchedAddresses["Type"],
  pool: AddressPool,
  derived?: Derived
) {
  const tx = yield* Tx
  const { fingerprint, mode } = pool
  const { jump, next_index: from } = (yield* Repo.byFingerprint(tx, fingerprint)) ?? { jump: 0, next_index: 0 }
  const next = from + jump
  if (jump > 0) {
    const known = derived === undefined ? [] : derived.addresses.slice(Math.max(0, from - derived.from))
    const skipped = [...known, ...pool.rangeAtOnce(from + known.length, next)]
    yield* Repo.jumpedTo(fingerprint, next)
    yield* Repo.keepGap(fingerprint, mode, from, skipped, yield* Clock.currentTimeMillis)
    tx.afterCommit(() => {
      for (const address of skipped) matchSet.add(mode, address)
    })
    yield* Effect.logWarning("address numbering jumps ahead: the skipped addresses are watched").pipe(
      Effect.annotateLogs({ wallet: fingerprint, from, to: next })
    )
  }
  tx.afterCommit(() => pool.startAt(next))
  return { wallet: fingerprint, from, next } satisfies Jumped
})
