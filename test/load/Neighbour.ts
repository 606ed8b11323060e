/**
 * Who harms whom: a merchant that uses all that one key may; receivers of such a merchant that take connections and never
 * answer; and another chain's provider whose answers are meant to stall whoever reads them.
 */
export const neighbours = ["merchant", "receivers", "provider"] as const
export type Neighbour = (typeof neighbours)[number]

/** What a hostile process is told. */
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
