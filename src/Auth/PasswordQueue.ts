/**
 * The order in which passwords are hashed, one at a time. Every admitted attempt is served: a new one that would wait
 * for too many turns is refused. People at a network from which they have signed in before have a separate queue with
 * seven of eight turns, so that strangers, however many, hardly delay them. Known people take turns by account,
 * strangers by wide network: one with few waiting is admitted, however many others have.
 */
import { FairQueue } from "../Domain/FairQueue.ts"
import type { Person } from "../Domain/Person.ts"

/** Whose password it is to be. The first owner has the turns; of each further one only so many may wait. */
export interface Claimant {
  readonly isKnown: boolean
  readonly owners: ReadonlyArray<string>
}

/**
 * A person who has signed in before. Turns are their account's: its people, however many it invites, delay no others.
 *
 * @param place the network that they have signed in from, or their session
 */
export const knownPerson = ({ account, id }: Pick<Person, "account" | "id">, place: string): Claimant => ({
  isKnown: true,
  owners: [`account ${account ?? ""}`, id, `${id} ${place}`]
})

/**
 * Somebody of whom nothing is known but where they are.
 *
 * @param wide the network around the network, whose turns are shared: many addresses of one are as good as one
 */
export const strangerAt = (network: string, wide: string): Claimant => ({
  isKnown: false,
  owners: [`around ${wide}`, network]
})

/** The most that wait, whatever the time; the turns are fewer. */
const total = 512
/**
 * The most of a person who is known, of them at one place, and of a network of which nothing is known. Others of the same
 * account wait for a person's.
 */
const mostOfPerson = 8
const mostOfPlace = 4
const mostOfNetwork = 4
/** After so many turns of people who are known, a stranger who waits is next. */
const knownInARow = 7

interface Waiting<A> {
  readonly claimant: Claimant
  readonly item: A
}

export class PasswordQueue<A> {
  readonly #known = new FairQueue<Waiting<A>>(total)
  readonly #strangers = new FairQueue<Waiting<A>>(total)
  /** How many of each owner wait, the one who has turns apart. */
  readonly #counts = new Map<string, number>()
  #row = 0

  get size(): number {
    return this.#known.size + this.#strangers.size
  }

  /** How many turns a claimant who comes now has to wait for. */
  #turnsBefore({ isKnown, owners: [lane = ""] }: Claimant): number {
    const turns = (isKnown ? this.#known : this.#strangers).turnsBefore(lane)
    return isKnown
      ? turns + Math.min(this.#strangers.size, Math.ceil(turns / knownInARow))
      : turns + Math.min(this.#known.size, knownInARow * (turns + 1))
  }

  /**
   * Why there is no room for one more of a claimant: too many of theirs wait, or of all.
   *
   * @param most turns that anybody waits for
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

  /** Adds an item of a claimant who is not refused. Returns what takes it out again, unless it is out already. */
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
