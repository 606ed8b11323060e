import { randomUUID } from "node:crypto"
import { Context, Effect, Runtime } from "effect"
import { Settings } from "../../Settings.ts"
import { Reader, type Tx } from "../../Sql.ts"
import { type Mark, openIndexMark } from "./IndexMark.ts"
import * as Repo from "./WalletsRepo.ts"

/** How far numbering jumps where nothing proves that it may go on. */
export const blindJump = 1000
/** The same; a simulation that hands out few addresses watches fewer. */
export class BlindJump extends Context.Reference<BlindJump>()("tilld/Payments/BlindJump", {
  defaultValue: () => blindJump
}) {}

/** What the database knows: its token, and each wallet's next index, what it has to jump included. */
export interface KnownWallets {
  readonly token: string
  readonly wallets: Mark["wallets"]
}

/** The next index of each wallet, by fingerprint. */
export const nextOf = (rows: ReadonlyArray<Repo.WalletRow>): Mark["wallets"] =>
  Object.fromEntries(rows.map(({ fingerprint, jump, next_index }) => [fingerprint, next_index + jump]))

/**
 * Why it is not proven that the database is the one that was last written here; undefined where it is: its mark has the
 * token of its last start, and is not ahead of it. A crash leaves it behind at most.
 */
export const doubtOf = ({ token, wallets }: KnownWallets, mark: Mark | undefined): string | undefined => {
  if (mark === undefined) {
    const isFirst = token === "" && Object.keys(wallets).length === 0
    return isFirst ? undefined : "its mark is missing or unreadable, so that this may be an older copy of the database"
  }
  if (Object.entries(mark.wallets).some(([wallet, next]) => next > (wallets[wallet] ?? 0))) {
    return "the database is older than the last address handed out: a copy was restored"
  }
  return mark.tokens.includes(token)
    ? undefined
    : "its mark is of another start: a copy of the database was restored, or has run elsewhere"
}

/**
 * The numbering of the database and its mark, from the start to the end of a daemon. `changed` is called after each write of
 * the mark: a power cut takes what `sync` has not brought to disk.
 *
 * Each start makes a token. The mark takes it beside the last one, then the database, and then it is the mark's only one: at
 * whichever moment a crash comes, the mark knows the database's token.
 */
export const openNumbering = Effect.fnUntraced(function* (changed: () => void) {
  const { database } = yield* Settings
  const blind = yield* BlindJump
  const fork = Runtime.runFork(yield* Effect.runtime<never>())
  const mark = yield* openIndexMark(database, (cause) => {
    fork(Effect.logError("the mark of the address numbering cannot be written", cause))
  })
  const token = randomUUID()
  const reader = yield* Reader
  const { token: last } = yield* Repo.numbering(reader)
  const found = mark.found?.wallets ?? {}
  const doubt = doubtOf({ token: last, wallets: nextOf(yield* Repo.all(reader)) }, mark.found)
  yield* mark.begin(doubt === undefined ? [last, token] : [token], found)

  let wallets: Mark["wallets"] = found
  const write = () => {
    mark.write([token], wallets)
    changed()
  }

  /** In the transaction that begins: the token, and the jump where continuity is not proven. */
  const begin = Effect.gen(function* () {
    yield* Repo.renewToken(token)
    if (doubt === undefined) return
    yield* Effect.forEach(Object.entries(found), ([wallet, next]) => Repo.oweJumpTo(wallet, next), {
      concurrency: 1,
      discard: true
    })
    yield* Repo.oweJump(blind)
    yield* Effect.logWarning(`address numbering cannot be proven to go on: ${doubt}`).pipe(
      Effect.annotateLogs({ jump: blind, mark: database.markFolder })
    )
  })

  /** The mark follows what the transaction has done to the wallets. */
  const follow = (tx: Tx["Type"]) =>
    Effect.map(Repo.all(tx), (rows) =>
      tx.afterCommit(() => {
        wallets = nextOf(rows)
        write()
      })
    )

  /** The wallet's next index is another. The mark is not written yet. */
  const note = (wallet: string, next: number) => {
    wallets = { ...wallets, [wallet]: next }
  }

  return { begin, follow, note, write, sync: mark.sync }
})
