import { createHash } from "node:crypto"
import { Duration, Effect, Redacted } from "effect"
import { RotationUnderWay, SecretReplaced, type SecretUnreadable } from "../Domain/SecretErrors.ts"
import type { SecretsShape } from "../Secrets.ts"
import type { SealedPair } from "./queue/EndpointsRepo.ts"

/** A signing secret and, during a rotation, the one before it. */
export interface SecretPair {
  readonly current: Redacted.Redacted<string>
  /** The previous secret, and until when it also signs: Unix milliseconds. */
  readonly previous: { readonly secret: Redacted.Redacted<string>; readonly until: number } | undefined
}

/** How a secret is replaced. */
export interface Rotation {
  /** How long the present secret also signs. */
  readonly overlap: Duration.Duration
  /** `markOf` the secret that it replaces, so that a request that is made twice rotates once; undefined: any. */
  readonly replaces?: string | undefined
}

/** Identifies a stored secret without revealing it. Each rotation makes another mark, also to the same secret. */
export const markOf = (stored: Pick<SealedPair, "secret"> | undefined): string =>
  stored === undefined ? "none" : createHash("sha256").update(stored.secret).digest("base64url").slice(0, 22)

/** Fails unless a rotation replaces what is stored. */
export const isForStored = ({ replaces }: Rotation, stored: SealedPair | undefined) =>
  replaces === undefined || replaces === markOf(stored) ? Effect.void : new SecretReplaced()

/** Where a pair is stored. */
export interface PairRow {
  readonly secrets: SecretsShape
  /** The sealing context of a column: a value can be opened only as this column of this row. */
  readonly context: (column: keyof SealedPair) => string
  readonly unreadable: () => SecretUnreadable
}

/** Unseals a pair. */
export const openPair = ({ context, secrets, unreadable }: PairRow, row: SealedPair) =>
  Effect.try({
    try: (): SecretPair => {
      const { previous_secret: previous, previous_until: until } = row
      return {
        current: secrets.open(row.secret, context("secret")),
        previous:
          previous === null || until === null
            ? undefined
            : { secret: secrets.open(previous, context("previous_secret")), until }
      }
    },
    catch: unreadable
  })

/**
 * The pair after a rotation to `next` at `now`, Unix milliseconds: the stored secret also signs for `overlap` longer. During
 * an overlap only a rotation without one is accepted: there are never three valid secrets.
 */
export const rotatePair = Effect.fnUntraced(function* (
  row: PairRow,
  stored: SealedPair | undefined,
  next: Redacted.Redacted<string>,
  overlap: Duration.Duration,
  now: number
) {
  const sealed = (secret: Redacted.Redacted<string>, column: keyof SealedPair) =>
    row.secrets.seal(Redacted.value(secret), row.context(column))
  const alone: SealedPair = { secret: sealed(next, "secret"), previous_secret: null, previous_until: null }
  if (stored === undefined || Duration.equals(overlap, Duration.zero)) return alone
  if (stored.previous_until !== null && now < stored.previous_until) {
    return yield* RotationUnderWay.of(stored.previous_until)
  }
  const { current } = yield* openPair(row, stored)
  return {
    ...alone,
    previous_secret: sealed(current, "previous_secret"),
    previous_until: now + Duration.toMillis(overlap)
  }
})
