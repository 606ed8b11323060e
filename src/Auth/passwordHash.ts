/**
 * scrypt. One hash takes about 0.4 s of a thread and 128 MiB, so only one is computed at a time. `PasswordQueue`
 * decides whose turn it is, and who is refused when too many wait.
 */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto"
import { promisify } from "node:util"
import { Context, Data, Deferred, Duration, Effect, FiberId } from "effect"
import type { Person } from "../Domain/Person.ts"
import { FairQueue } from "../lib/FairQueue.ts"

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

/**
 * Milliseconds; no client is known to wait longer. The listener closes a connection that is silent for 30 seconds, and
 * an attempt may have been held for 15 before.
 */
const longestWait = 12_000
/**
 * Assumed duration of a hash before the first, its minimum and its maximum, in milliseconds. A stalling machine still
 * admits a few: their hashes show when it has recovered.
 */
const usualPace = 400
const leastPace = 200
const mostPace = 3_000

/** Too many attempts are waiting. Nothing was checked. */
export class TooManyWaiting extends Data.TaggedError("TooManyWaiting")<{ readonly message: string }> {
  static of(those: "theirs" | "all") {
    const why =
      those === "theirs"
        ? "Other attempts from your network are still being checked"
        : "Too many people are signing in by password"
    return new TooManyWaiting({ message: `${why}. Try again in a few seconds, or use a passkey or a link.` })
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
  /** Each is done when it is its attempt's turn. */
  const queue = new PasswordQueue<Deferred.Deferred<void>>()
  let current: Deferred.Deferred<void> | undefined
  /** Milliseconds that recent hashes have taken. */
  let pace = usualPace

  const goOn = () => {
    current = queue.next()
    if (current !== undefined) Deferred.unsafeDone(current, Effect.void)
  }

  const enter = (claimant: Claimant) =>
    Effect.suspend(() => {
      const refusal = queue.refusal(claimant, Math.floor(longestWait / pace))
      if (refusal !== undefined) return TooManyWaiting.of(refusal)
      const turn = Deferred.unsafeMake<void>(FiberId.none)
      const remove = queue.add(claimant, turn)
      if (current === undefined) goOn()
      return Effect.succeed({ turn, remove })
    })

  const paced = <A>(work: Effect.Effect<A>): Effect.Effect<A> =>
    Effect.map(Effect.timed(work), ([took, result]) => {
      pace = Math.min(mostPace, Math.max(leastPace, (3 * pace + Duration.toMillis(took)) / 4))
      return result
    })

  const inTurn = <A>(claimant: Claimant, work: Effect.Effect<A>): Effect.Effect<A, TooManyWaiting> =>
    Effect.acquireUseRelease(
      enter(claimant),
      ({ turn }) => Effect.zipRight(Deferred.await(turn), paced(work)),
      ({ remove, turn }) =>
        Effect.sync(() => {
          remove()
          if (current === turn) goOn()
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

/** The owners of an attempt. The first owner has the turns; each further one only limits how many may wait. */
export interface Claimant {
  readonly isKnown: boolean
  readonly owners: ReadonlyArray<string>
}

/**
 * A person who has signed in before. Turns are counted per account, so that inviting many people delays no others.
 *
 * @param place the network that they have signed in from, or their session
 */
export const knownPerson = ({ account, id }: Pick<Person, "account" | "id">, place: string): Claimant => ({
  isKnown: true,
  owners: [`account ${account ?? ""}`, id, `${id} ${place}`]
})

/**
 * A stranger, known only by their network.
 *
 * @param wide the network around the network, whose turns are shared: many addresses of one are as good as one
 */
export const strangerAt = (network: string, wide: string): Claimant => ({
  isKnown: false,
  owners: [`around ${wide}`, network]
})

/** Maximum queue length, regardless of time; usually the turns limit it first. */
const total = 512
/**
 * Maximum waiting attempts of a known person, of them at one place, and of an unknown network. Others of the same
 * account wait for a person's.
 */
const mostOfPerson = 8
const mostOfPlace = 4
const mostOfNetwork = 4
/** After this many turns of known people, a waiting stranger is next. */
const knownInARow = 7

interface Waiting<A> {
  readonly claimant: Claimant
  readonly item: A
}

/**
 * The order in which passwords are hashed. Every admitted attempt is served: one that would wait for too many turns is refused.
 * People at a network from which they have signed in before have a separate queue with seven of eight turns, so that strangers,
 * however many, hardly delay them. Known people take turns by account, strangers by wide network.
 */
export class PasswordQueue<A> {
  readonly #known = new FairQueue<Waiting<A>>(total)
  readonly #strangers = new FairQueue<Waiting<A>>(total)
  /** Waiting attempts by owner, counted apart for the owner of the turns. */
  readonly #counts = new Map<string, number>()
  #row = 0

  get size(): number {
    return this.#known.size + this.#strangers.size
  }

  /** The number of turns that a new claimant has to wait for. */
  #turnsBefore({ isKnown, owners: [lane = ""] }: Claimant): number {
    const turns = (isKnown ? this.#known : this.#strangers).turnsBefore(lane)
    return isKnown
      ? turns + Math.min(this.#strangers.size, Math.ceil(turns / knownInARow))
      : turns + Math.min(this.#known.size, knownInARow * (turns + 1))
  }

  /**
   * Why there is no room for another attempt: too many of the claimant's wait, or of all.
   *
   * @param most maximum turns to wait for
   */
  refusal(claimant: Claimant, most: number): "theirs" | "all" | undefined {
    const { isKnown, owners } = claimant
    const limits = isKnown ? [mostOfPerson, mostOfPlace] : [mostOfNetwork]
    const isTheirs = owners.slice(1).some((owner, n) => (this.#counts.get(owner) ?? 0) >= (limits[n] ?? 0))
    if (isTheirs) return "theirs"
    const isFull = (isKnown ? this.#known : this.#strangers).size >= total
    return isFull || this.#turnsBefore(claimant) >= most ? "all" : undefined
  }

  #count({ owners }: Claimant, by: 1 | -1): void {
    for (const owner of owners.slice(1)) {
      const count = (this.#counts.get(owner) ?? 0) + by
      if (count === 0) this.#counts.delete(owner)
      else this.#counts.set(owner, count)
    }
  }

  /** Adds an item of an admitted claimant. Returns a function that removes it, unless it is removed already. */
  add(claimant: Claimant, item: A): () => void {
    const waiting: Waiting<A> = { claimant, item }
    const line = claimant.isKnown ? this.#known : this.#strangers
    const [first = ""] = claimant.owners
    line.add(first, waiting)
    this.#count(claimant, 1)
    return () => {
      if (line.remove(first, waiting)) this.#count(claimant, -1)
    }
  }

  /** Takes the next item out. */
  next(): A | undefined {
    const isStrangers = this.#known.size === 0 || (this.#strangers.size > 0 && this.#row >= knownInARow)
    this.#row = isStrangers ? 0 : this.#row + 1
    const waiting = (isStrangers ? this.#strangers : this.#known).next()
    if (waiting !== undefined) this.#count(waiting.claimant, -1)
    return waiting?.item
  }
}
