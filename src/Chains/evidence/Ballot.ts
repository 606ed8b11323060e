/**
 * The responses of several providers to the same questions in one round, and their tally. It is the only place that
 * counts providers. The caller puts each answer into a ballot, and acts by the tally:
 *
 * - A question is shown once a quorum of two gives the same answer to it, with the same value.
 * - It is denied once a quorum says no and it is not shown.
 * - Otherwise it stays open, and is asked again in a later round. Nothing is added up across rounds: an answer that a
 *   provider gave before a reorg says nothing about the chain of today.
 */

/** The quorum: how many providers must give the same response. */
export const quorum = 2

/** A provider's response to a question. Silence is not a vote. */
export type Vote<Value> =
  | { readonly is: "yes"; readonly value: Value }
  /** `otherBlock`: it has another block at the height in question, and cannot know what is in this one. */
  | { readonly is: "no"; readonly otherBlock: boolean }
  /** It lacks the data, such as the states of an old block. That is not a denial. */
  | { readonly is: "unable" }

export const yes = <Value>(value: Value): Vote<Value> => ({ is: "yes", value })
export const no: Vote<never> = { is: "no", otherBlock: false }
export const onOtherBlock: Vote<never> = { is: "no", otherBlock: true }
export const unable: Vote<never> = { is: "unable" }

/** A provider that says yes, and its value. */
interface Claim<Value, Voter> {
  readonly by: Voter
  readonly value: Value
}

/** The tally of a question. */
export interface Tally<Value, Voter> {
  readonly outcome: "shown" | "denied" | "open"
  /** All that say yes. */
  readonly claims: ReadonlyArray<Claim<Value, Voter>>
  /** The largest group with the same value. */
  readonly agreed: ReadonlyArray<Claim<Value, Voter>>
  /**
   * Those that say no. Once a quorum has the block in question, those that have another one there do not count: they
   * are on a branch of their own.
   */
  readonly denials: ReadonlyArray<Voter>
  /** Those that say no and have another block there, whether they count or not. */
  readonly elsewhere: ReadonlyArray<Voter>
  readonly unable: ReadonlyArray<Voter>
}

export class Ballot<Question, Value, Voter> {
  readonly #votes = new Map<Question, Map<Voter, Vote<Value>>>()

  /** @param isSame whether two values agree */
  constructor(readonly isSame: (one: Value, other: Value) => boolean = Object.is) {}

  /** Each provider has one vote: one that contradicts itself has none. */
  vote(question: Question, by: Voter, vote: Vote<Value>): void {
    const votes = this.#votes.get(question) ?? new Map<Voter, Vote<Value>>()
    const before = votes.get(by)
    this.#votes.set(question, votes.set(by, before === undefined || this.#agrees(before, vote) ? vote : unable))
  }

  tally(question: Question): Tally<Value, Voter> {
    const votes = [...(this.#votes.get(question) ?? [])]
    const claims = votes.flatMap(([by, answer]) => (answer.is === "yes" ? [{ by, value: answer.value }] : []))
    const denying = votes.flatMap(([by, answer]) => (answer.is === "no" ? [{ by, ...answer }] : []))
    const inBlock = denying.filter(({ otherBlock }) => !otherBlock)
    const counted = inBlock.length + claims.length >= quorum ? inBlock : denying
    const agreed = this.#largestGroup(claims)
    return {
      outcome: agreed.length >= quorum ? "shown" : counted.length >= quorum ? "denied" : "open",
      claims,
      agreed,
      denials: counted.map(({ by }) => by),
      elsewhere: denying.filter(({ otherBlock }) => otherBlock).map(({ by }) => by),
      unable: votes.flatMap(([by, answer]) => (answer.is === "unable" ? [by] : []))
    }
  }

  /** The questions that are shown, each with the values of the quorum. */
  get shown(): ReadonlyArray<readonly [Question, ReadonlyArray<Value>]> {
    return this.#agreed(({ outcome }) => outcome === "shown")
  }

  /** The questions with any yes, each with the values of the largest group. */
  get claimed(): ReadonlyArray<readonly [Question, ReadonlyArray<Value>]> {
    return this.#agreed(({ claims }) => claims.length > 0)
  }

  #agreed(isWanted: (tally: Tally<Value, Voter>) => boolean): ReadonlyArray<readonly [Question, ReadonlyArray<Value>]> {
    return [...this.#votes.keys()].flatMap((question) => {
      const tally = this.tally(question)
      return isWanted(tally) ? [[question, tally.agreed.map(({ value }) => value)] as const] : []
    })
  }

  #agrees(one: Vote<Value>, other: Vote<Value>): boolean {
    return one.is === "yes" && other.is === "yes" ? this.isSame(one.value, other.value) : one.is === other.is
  }

  #largestGroup(claims: ReadonlyArray<Claim<Value, Voter>>): ReadonlyArray<Claim<Value, Voter>> {
    const groups = claims.map((claim) => claims.filter(({ value }) => this.isSame(claim.value, value)))
    return groups.reduce((largest, group) => (group.length > largest.length ? group : largest), [])
  }
}

/**
 * The highest number that a quorum claims at least: one provider alone may claim too much. Undefined where fewer claim
 * anything.
 */
export const reached = <Claim>(claims: ReadonlyArray<Claim>, numberOf: (claim: Claim) => number): Claim | undefined =>
  [...claims].sort((one, other) => numberOf(other) - numberOf(one))[quorum - 1]

/** The common value; undefined where they differ. */
export const unanimous = <Value>([first, ...others]: ReadonlyArray<Value>): Value | undefined =>
  others.every((other) => other === first) ? first : undefined

/** The median of several values, of two the lower: no single provider moves it beyond another one's value. */
export const middle = (values: ReadonlyArray<bigint>): bigint | undefined =>
  [...values].sort((one, other) => (one < other ? -1 : Number(one > other)))[(values.length - 1) >> 1]
