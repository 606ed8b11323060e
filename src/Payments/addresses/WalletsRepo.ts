/**
 * The wallets' counters and the jumps they owe (`wallets`), the numbering as a whole (`numbering`), and the addresses that
 * jumps have skipped (`gap_addresses`). A wallet that owes a jump hands out nothing until it has jumped.
 */
import { Clock, Effect } from "effect"
import { getAddress } from "viem"
import type { Mode } from "../../Domain/Chain.ts"
import type { HdWallet } from "../../Settings/hdWallet.ts"
import { type Db, execute, oneValue, Tx } from "../../Sql.ts"

export interface WalletRow {
  readonly fingerprint: string
  readonly next_index: number
  /** Indexes that it still has to jump over. */
  readonly jump: number
}

export const all = (db: Db) =>
  db.all<WalletRow>("SELECT fingerprint, next_index, jump FROM wallets ORDER BY fingerprint")

export const byFingerprint = (db: Db, fingerprint: string) =>
  db.get<WalletRow>("SELECT fingerprint, next_index, jump FROM wallets WHERE fingerprint = ?", [fingerprint])

/** Adds the wallet if it is not known, or its account's number. */
export const ensure = ({ account, fingerprint, sponsor }: Pick<HdWallet, "fingerprint"> & Partial<HdWallet>) =>
  execute(
    `INSERT INTO wallets (fingerprint, next_index, jump, account_number, sponsor)
       SELECT ?, 0, jump, CAST(? AS BIGINT), ? FROM numbering WHERE true
       ON CONFLICT (fingerprint) DO UPDATE
         SET account_number = coalesce(excluded.account_number, wallets.account_number),
           sponsor = coalesce(excluded.sponsor, wallets.sponsor)`,
    [fingerprint, account ?? null, sponsor?.toLowerCase() ?? null]
  )

/** The sponsor of the wallet of a payment, or of the address of a lost one; lower case. Undefined where its key was never known. */
export const sponsorOf = (db: Db, owner: string) =>
  oneValue<string>(
    db,
    `SELECT sponsor FROM wallets WHERE fingerprint IN
       (SELECT wallet FROM payments WHERE id = ? UNION ALL SELECT wallet FROM gap_addresses WHERE address = ?)`,
    [owner, owner.startsWith("0x") ? getAddress(owner) : ""]
  )

/** Takes the wallet's next index; undefined while it has to jump first. */
export const nextIndex = (fingerprint: string) =>
  Effect.flatMap(Tx, (tx) =>
    oneValue<number>(
      tx,
      "UPDATE wallets SET next_index = next_index + 1 WHERE fingerprint = ? AND jump = 0 RETURNING next_index - 1",
      [fingerprint]
    )
  )

/** The wallet has jumped to `next`. */
export const jumpedTo = (fingerprint: string, next: number) =>
  execute("UPDATE wallets SET next_index = ?, jump = 0 WHERE fingerprint = ?", [next, fingerprint])

/**
 * Stores addresses, of the indexes from `from` on, that a lost newer copy of this database may have handed out. They
 * are dated by the newest head where this machine's clock is behind, as after a start from an old image: with an old
 * date their watch would soon end.
 */
export const keepGap = (fingerprint: string, mode: Mode, from: number, addresses: ReadonlyArray<string>, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const [i, address] of addresses.entries()) {
      yield* tx.run(
        `INSERT INTO gap_addresses (address, mode, wallet, wallet_index, created_at)
         VALUES (?, ?, ?, ?, max(?, (SELECT coalesce(max(head_time), 0) * 1000 FROM scans WHERE mode = ?)))`,
        [address, mode, fingerprint, from + i, now, mode]
      )
    }
  })

/** The numbering as a whole, apart from its wallets. */
export interface Numbering {
  /** The token of the daemon's last start; empty before the first. */
  readonly token: string
  /** Indexes that a wallet jumps over which is new to this database: a lost newer copy may have used it. */
  readonly jump: number
}

export const numbering = (db: Db) =>
  Effect.map(db.get<Numbering>("SELECT token, jump FROM numbering"), (row): Numbering => {
    if (row === undefined) throw new Error("the store has no numbering")
    return row
  })

export const renewToken = (token: string) => execute("UPDATE numbering SET token = ?", [token])

/**
 * All wallets have to jump, later ones too until `forgetJump`. Each jumps once its key is available to derive the skipped
 * addresses. Dated by the newest head where this machine's clock is behind, as the skipped addresses are.
 */
export const oweJump = Effect.fnUntraced(function* (by: number) {
  if (by === 0) return
  const tx = yield* Tx
  yield* tx.run("UPDATE wallets SET jump = jump + ?", [by])
  yield* tx.run(
    "UPDATE numbering SET jump = jump + ?, jumped_at = max(?, (SELECT coalesce(max(head_time), 0) * 1000 FROM scans))",
    [by, yield* Clock.currentTimeMillis]
  )
})

/**
 * A wallet that comes later begins at 0 again: what a lost copy may have handed out of it was no longer watched by then. The
 * counter belongs to the wallet, and a gap hides money from the programs that read it.
 */
export const forgetJump = (before: number) =>
  execute("UPDATE numbering SET jump = 0 WHERE jump > 0 AND jumped_at < ?", [before])

/** The wallet has to jump to `next`, unless it is further already. */
export const oweJumpTo = (fingerprint: string, next: number) =>
  Effect.flatMap(Tx, (tx) =>
    Effect.zipRight(
      ensure({ fingerprint }),
      tx.run("UPDATE wallets SET jump = max(jump, ? - next_index) WHERE fingerprint = ?", [next, fingerprint])
    )
  )
