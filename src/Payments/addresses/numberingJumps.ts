/**
 * Jumps of the address numbering: why a wallet has to jump is in `numbering.ts` and `WalletsRepo.ts`, how it jumps is here.
 * A jump skips indexes that a lost newer copy of the database may have handed out, and the skipped addresses are watched.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../../Sql.ts"
import type { AddressPool } from "./AddressPool.ts"
import * as Repo from "./WalletsRepo.ts"

/** A wallet whose numbering has jumped ahead. */
export interface Jumped {
  /** The wallet's fingerprint. */
  readonly wallet: string
  /** The next index before, and now. */
  readonly from: number
  readonly next: number
}

/** Makes the numbering of all wallets jump ahead by hand: in the daemon (`jumpsLayer`), or in a command without one. */
export class Jumps extends Context.Tag("tilld/Payments/Jumps")<
  Jumps,
  { readonly jump: (by: number) => Effect.Effect<ReadonlyArray<Jumped>, StoreUnavailable> }
>() {}

/** Without a daemon the jump is only stored. The daemon's next start derives the skipped addresses and watches them. */
export const notedJumps = Layer.effect(
  Jumps,
  Effect.gen(function* () {
    const reader = yield* Reader
    const writer = yield* Writer
    const jump = Effect.fn("Addresses.noteJump")(function* (by: number) {
      const before = yield* Repo.all(reader)
      yield* writer.write(Repo.oweJump(by))
      return before.map(({ fingerprint, jump, next_index }): Jumped => {
        return { wallet: fingerprint, from: next_index + jump, next: next_index + jump + by }
      })
    })
    return { jump }
  })
)

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
