/**
 * The order in which passwords are hashed, one at a time. Every admitted attempt is served: a new one that would wait
 * for too many turns is refused. People at a network from which they have signed in before have a separate queue with
 * seven of eight turns, so that strangers, however many, hardly delay them. Known people take turns by account,
 * strangers by wide network: one with few waiting is admitted, however many others have.
 */

import type { Person } from "../Domain/Person.ts"
import { FairQueue } from "../lib/FairQueue.ts"

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
