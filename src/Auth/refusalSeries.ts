import { BoundedMap } from "../Domain/BoundedMap.ts"
import type { PersonId } from "../Domain/Ids.ts"

const hour = 60 * 60_000
/** Networks of a person in an hour whose refusals are noted. */
const mostNetworks = 10
/** People in memory. */
const capacity = 10_000

/**
 * Which refused passwords and proofs get a row in the audit log: of each person the first from a network in an hour,
 * and no more than ten rows an hour, so that no one floods the log.
 */
export class RefusalSeries {
  readonly #series = new BoundedMap<PersonId, { readonly since: number; readonly networks: Set<string> }>(capacity)

  /** Counts a refusal at `now`, Unix milliseconds. */
  isNoted(person: PersonId, network: string, now: number): boolean {
    const before = this.#series.get(person)
    const isOver = before === undefined || now < before.since || now - before.since >= hour
    const { networks, since } = isOver ? { since: now, networks: new Set<string>() } : before
    if (networks.has(network) || networks.size >= mostNetworks) return false
    this.#series.set(person, { since, networks: networks.add(network) })
    return true
  }
}
