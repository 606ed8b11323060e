/**
 * Hostile neighbours: a merchant that uses all that one key allows; receivers of such a merchant that accept connections
 * and never respond; and another chain's provider whose responses are meant to stall their reader.
 */
export const neighbours = ["merchant", "receivers", "provider"] as const
export type Neighbour = (typeof neighbours)[number]

/** The orders of a hostile process. */
export interface NeighbourOrder {
  readonly who: ReadonlyArray<Neighbour>
  readonly port: number
  /** Of an account of the attacker's own. */
  readonly key: string
  /** Where the other chain's provider is expected. */
  readonly providerPort: number
  readonly seconds: number
}

/** How much harm was tried, by kind: requests by status, connections that were kept, answers that were given. */
export type Tried = Readonly<Record<string, number>>
