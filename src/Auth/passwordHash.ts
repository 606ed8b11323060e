/**
 * scrypt. One hash takes about 0.4 s of a thread and 128 MiB, so only one is computed at a time, clients take turns, and
 * none of them can make the others wait for more than one of its own.
 */
import { randomBytes, scrypt, timingSafeEqual } from "node:crypto"
import { Data, Effect } from "effect"

// OWASP Password Storage Cheat Sheet: N = 2^17, r = 8, p = 1.
const parameters = { N: 2 ** 17, r: 8, p: 1, maxmem: 160 * 1024 * 1024 }
const hashBytes = 32
const saltBytes = 16

/** The most attempts that wait, of one client and of all. */
const mostOfClient = 4
const most = 64

/** Too many attempts are waiting. Nothing was checked. */
export class TooManyWaiting extends Data.TaggedError("TooManyWaiting") {}

export interface SaltedHash {
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

export interface PasswordHasher {
  /** @param client its network */
  readonly hash: (password: string, client: string) => Effect.Effect<SaltedHash, TooManyWaiting>
  /** Whether it is the password. Without a stored one it is not, and takes as long. */
  readonly verify: (
    password: string,
    client: string,
    stored: SaltedHash | undefined
  ) => Effect.Effect<boolean, TooManyWaiting>
}

/** Cannot be interrupted: whoever goes away would leave the thread and its memory behind, and start another one. */
const compute = (password: string, salt: Uint8Array): Effect.Effect<Buffer> =>
  Effect.uninterruptible(
    Effect.async<Buffer>((resume) =>
      scrypt(password.normalize("NFKC"), salt, hashBytes, parameters, (error, hash) =>
        resume(error === null ? Effect.succeed(hash) : Effect.die(error))
      )
    )
  )

/** Of nobody's password. */
const decoy: SaltedHash = { salt: randomBytes(saltBytes), hash: randomBytes(hashBytes) }

export const makePasswordHasher = Effect.gen(function* () {
  const thread = yield* Effect.makeSemaphore(1)
  const clients = new Map<string, { waiting: number; readonly turn: Effect.Semaphore }>()
  let waiting = 0

  const inTurn = <A>(client: string, work: Effect.Effect<A>): Effect.Effect<A, TooManyWaiting> =>
    Effect.acquireUseRelease(
      Effect.suspend(() => {
        const entry = clients.get(client) ?? { waiting: 0, turn: Effect.unsafeMakeSemaphore(1) }
        if (entry.waiting >= mostOfClient || waiting >= most) return new TooManyWaiting()
        entry.waiting += 1
        waiting += 1
        clients.set(client, entry)
        return Effect.succeed(entry)
      }),
      ({ turn }) => turn.withPermits(1)(thread.withPermits(1)(work)),
      (entry) =>
        Effect.sync(() => {
          entry.waiting -= 1
          waiting -= 1
          if (entry.waiting === 0) clients.delete(client)
        })
    )

  const hasher: PasswordHasher = {
    hash: (password, client) => {
      const salt = randomBytes(saltBytes)
      return Effect.map(inTurn(client, compute(password, salt)), (hash) => ({ salt, hash }))
    },
    verify: (password, client, stored = decoy) =>
      Effect.map(
        inTurn(client, compute(password, stored.salt)),
        (hash) => timingSafeEqual(hash, stored.hash) && stored !== decoy
      )
  }
  return hasher
})
