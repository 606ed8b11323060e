/**
 * scrypt. One hash takes about 0.4 s of a thread and 128 MiB, so only one is computed at a time. People at a network from which
 * they have signed in before have theirs before strangers, however many these are; those for whom there is no room, or who have
 * waited for long, are refused.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto"
import { promisify } from "node:util"
import { Context, Data, Deferred, Effect, FiberId } from "effect"
import type { Person } from "../Domain/Person.ts"
import { KnownFirst } from "./KnownFirst.ts"

/** Maximum characters of a password, and of a sign-in name before it is normalised. */
export const mostTyped = 1_000

/**
 * What a person typed, in the form that keyboards agree on. A longer text is neither a name nor a password, and stays
 * as it is: ordering a run of combining marks takes time quadratic in its length.
 */
export const normalText = (text: string): string => (text.length > mostTyped ? text : text.normalize("NFKC"))

/** What a hash costs: as the OWASP Password Storage Cheat Sheet has it. Only tests, which hash often, provide another cost. */
export class PasswordCost extends Context.Reference<PasswordCost>()("tilld/Auth/PasswordCost", {
  defaultValue: (): ScryptOptions => ({ N: 2 ** 17, r: 8, p: 1, maxmem: 160 * 1024 * 1024 })
}) {}

const hashBytes = 32
const saltBytes = 16

/** How long an attempt waits for its turn. The listener closes a connection that is silent for 30 seconds. */
const longestWait = "12 seconds"
/** Attempts that wait, of known people and of strangers each: so many are hashed in that time. */
const mostWaiting = 30
/** Those of one group of people, and of one place. */
const mostOfGroup = 8
const mostOfPlace = 4

const refusals = {
  theirs: "Other attempts from your network are still being checked. Try again in a few seconds",
  all: "Too many people are signing in by password. Try again in a few seconds",
  wrong: "Too many attempts from your network were wrong. Try again in a minute"
} as const

/** Nothing was checked: too many attempts are waiting, or were wrong. */
export class TooManyWaiting extends Data.TaggedError("TooManyWaiting")<{ readonly message: string }> {
  static of(why: keyof typeof refusals) {
    return new TooManyWaiting({ message: `${refusals[why]}, or use a passkey or a link.` })
  }
}

export interface SaltedHash {
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

export type PasswordHasher = Effect.Effect.Success<typeof makePasswordHasher>

const scryptOf = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt)

/** Uninterruptible: a client that disconnects would leave the thread and its memory behind, and start another one. */
const compute = (cost: ScryptOptions, password: string, salt: Uint8Array): Effect.Effect<Buffer> =>
  Effect.uninterruptible(Effect.promise(() => scryptOf(normalText(password), salt, hashBytes, cost)))

/** The hash of no one's password. */
const decoy: SaltedHash = { salt: randomBytes(saltBytes), hash: randomBytes(hashBytes) }

export const makePasswordHasher = Effect.map(PasswordCost, (cost) => {
  const queue = new KnownFirst<Attempt>(mostWaiting)
  let current: Attempt | undefined

  const goOn = () => {
    current = queue.next()
    if (current !== undefined) Deferred.unsafeDone(current.turn, Effect.void)
  }

  const enter = (claimant: Claimant) =>
    Effect.suspend(() => {
      const waiting = Array.from(queue, ({ claimant }) => claimant)
      const isTheirs =
        waiting.filter(({ group }) => group === claimant.group).length >= mostOfGroup ||
        waiting.filter(({ place }) => place === claimant.place).length >= mostOfPlace
      if (isTheirs) return TooManyWaiting.of("theirs")
      const attempt: Attempt = { claimant, turn: Deferred.unsafeMake(FiberId.none) }
      if (!queue.add(attempt, claimant.isKnown)) return TooManyWaiting.of("all")
      if (current === undefined) goOn()
      return Effect.succeed(attempt)
    })

  const turnOf = ({ turn }: Attempt) =>
    Effect.timeoutFail(Deferred.await(turn), { duration: longestWait, onTimeout: () => TooManyWaiting.of("all") })

  const inTurn = <A>(claimant: Claimant, work: Effect.Effect<A>): Effect.Effect<A, TooManyWaiting> =>
    Effect.acquireUseRelease(
      enter(claimant),
      (attempt) => Effect.zipRight(turnOf(attempt), work),
      (attempt) =>
        Effect.sync(() => {
          queue.remove(attempt)
          if (current === attempt) goOn()
        })
    )

  return {
    hash: (password: string, claimant: Claimant) => {
      const salt = randomBytes(saltBytes)
      return Effect.map(inTurn(claimant, compute(cost, password, salt)), (hash): SaltedHash => ({ salt, hash }))
    },
    /** Whether it is the password. Without a stored one it is not, and takes as long. */
    verify: (password: string, claimant: Claimant, stored: SaltedHash = decoy) =>
      Effect.map(
        inTurn(claimant, compute(cost, password, stored.salt)),
        (hash) => timingSafeEqual(hash, stored.hash) && stored !== decoy
      )
  }
})

/** Who tries a password. */
export interface Claimant {
  readonly isKnown: boolean
  /** Those who share a part of the queue: of people their account, of strangers the network around theirs. */
  readonly group: string
  /** Whose wrong passwords count together. */
  readonly place: string
}

interface Attempt {
  readonly claimant: Claimant
  /** Done when it is the attempt's turn. */
  readonly turn: Deferred.Deferred<void>
}

/**
 * A person who has signed in before.
 *
 * @param place the network that they have signed in from, or their session
 */
export const knownPerson = ({ account, id }: Pick<Person, "account" | "id">, place: string): Claimant => ({
  isKnown: true,
  group: `account ${account ?? ""}`,
  place: `${id} ${place}`
})

/**
 * A stranger, known only by their network.
 *
 * @param wide the network around the network: many addresses of one are as good as one
 */
export const strangerAt = (network: string, wide: string): Claimant => ({
  isKnown: false,
  group: `around ${wide}`,
  place: network
})
