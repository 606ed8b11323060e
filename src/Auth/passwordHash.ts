/**
 * scrypt. One hash takes about 0.4 s of a thread and 128 MiB, so only one is computed at a time. Networks take turns, and
 * when too many attempts wait, those of the network with most of them are refused: none keeps the others out.
 */
import { randomBytes, scrypt, timingSafeEqual } from "node:crypto"
import { Data, Deferred, Effect, FiberId } from "effect"
import { FairQueue } from "../Domain/FairQueue.ts"
import { normalText } from "./typedText.ts"

// OWASP Password Storage Cheat Sheet: N = 2^17, r = 8, p = 1.
const parameters = { N: 2 ** 17, r: 8, p: 1, maxmem: 160 * 1024 * 1024 }
const hashBytes = 32
const saltBytes = 16

/** The most attempts that wait, of all networks and of one. */
const limits = { total: 64, perOwner: 4 }

/** Too many attempts are waiting. Nothing was checked. */
export class TooManyWaiting extends Data.TaggedError("TooManyWaiting")<{ readonly message: string }> {
  static of(isOfNetwork: boolean) {
    const why = isOfNetwork
      ? "Other attempts from your network are still being checked"
      : "Too many people are signing in"
    return new TooManyWaiting({ message: `${why}. Try again in a few seconds.` })
  }
}

export interface SaltedHash {
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

export interface PasswordHasher {
  /** @param network of the client */
  readonly hash: (password: string, network: string) => Effect.Effect<SaltedHash, TooManyWaiting>
  /** Whether it is the password. Without a stored one it is not, and takes as long. */
  readonly verify: (
    password: string,
    network: string,
    stored: SaltedHash | undefined
  ) => Effect.Effect<boolean, TooManyWaiting>
}

/** Cannot be interrupted: whoever goes away would leave the thread and its memory behind, and start another one. */
const compute = (password: string, salt: Uint8Array): Effect.Effect<Buffer> =>
  Effect.uninterruptible(
    Effect.async<Buffer>((resume) =>
      scrypt(normalText(password), salt, hashBytes, parameters, (error, hash) =>
        resume(error === null ? Effect.succeed(hash) : Effect.die(error))
      )
    )
  )

/** Of nobody's password. */
const decoy: SaltedHash = { salt: randomBytes(saltBytes), hash: randomBytes(hashBytes) }

interface Attempt {
  readonly network: string
  /** Done when it is its turn; fails when it gave way to others. */
  readonly turn: Deferred.Deferred<void, TooManyWaiting>
}

export const makePasswordHasher = Effect.sync(() => {
  const queue = new FairQueue<Attempt>(limits)
  let current: Attempt | undefined

  const goOn = () => {
    current = queue.next()
    if (current !== undefined) Deferred.unsafeDone(current.turn, Effect.void)
  }

  const enter = (network: string) =>
    Effect.suspend(() => {
      if (!queue.hasRoomFor(network)) return TooManyWaiting.of(queue.countOf(network) > 0)
      const attempt: Attempt = { network, turn: Deferred.unsafeMake(FiberId.none) }
      const gaveWay = queue.add(network, attempt)
      if (gaveWay !== undefined) {
        const error = TooManyWaiting.of(queue.countOf(gaveWay.network) > 0)
        Deferred.unsafeDone(gaveWay.turn, Effect.fail(error))
      }
      if (current === undefined) goOn()
      return Effect.succeed(attempt)
    })

  const leave = (attempt: Attempt) =>
    Effect.sync(() => {
      queue.remove(attempt.network, attempt)
      if (current === attempt) goOn()
    })

  const inTurn = <A>(network: string, work: Effect.Effect<A>): Effect.Effect<A, TooManyWaiting> =>
    Effect.acquireUseRelease(enter(network), ({ turn }) => Effect.zipRight(Deferred.await(turn), work), leave)

  const hasher: PasswordHasher = {
    hash: (password, network) => {
      const salt = randomBytes(saltBytes)
      return Effect.map(inTurn(network, compute(password, salt)), (hash) => ({ salt, hash }))
    },
    verify: (password, network, stored = decoy) =>
      Effect.map(
        inTurn(network, compute(password, stored.salt)),
        (hash) => timingSafeEqual(hash, stored.hash) && stored !== decoy
      )
  }
  return hasher
})
