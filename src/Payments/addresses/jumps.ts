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

/** Lets the numbering of all wallets jump ahead by hand: the daemon's way, or that of a command without one. */
export class Jumps extends Context.Tag("tilld/Payments/Jumps")<
  Jumps,
  { readonly jump: (by: number) => Effect.Effect<ReadonlyArray<Jumped>, StoreUnavailable> }
>() {}

/** Without a daemon: it is only noted. The daemon's next start derives what is skipped, and watches it. */
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

/** What the wallet is to jump over, and `by` more, derived beside everything else: thousands take their time. */
export const deriveSkipped = Effect.fnUntraced(function* (
  pool: AddressPool,
  { jump, next_index: from }: Repo.WalletRow,
  by: number
) {
  return { from, addresses: yield* pool.range(from, from + jump + by) } satisfies Derived
})

/**
 * Lets a wallet jump as far as it has to, in the transaction, and has what it skips watched from then on. What is not
 * among `derived` is derived here.
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
    yield* Effect.logWarning("address numbering jumps ahead, and what it skips is watched").pipe(
      Effect.annotateLogs({ wallet: fingerprint, from, to: next })
    )
  }
  tx.afterCommit(() => pool.startAt(next))
  return { wallet: fingerprint, from, next } satisfies Jumped
})
