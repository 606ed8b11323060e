/**
 * What connections can do to a server: say nothing; be kept after one request; send their headers or their body a byte a
 * second; send more headers than there may be; and be more than a client may have.
 */
export const sorts = ["silent", "kept", "slowHeaders", "slowBodies", "oversized", "greedy"] as const
export type Sort = (typeof sorts)[number]

/** Linux answers at every address of 127.0.0.0/8; elsewhere all attackers are one client, and the only one. */
export const manyAddresses = process.platform === "linux"

export type Counts = Readonly<Record<Sort, number>>

/** The orders of the attacking process. */
export interface Attack {
  readonly port: number
  readonly counts: Counts
}

/** How many connections of a sort were answered with a status, or `closed` without a word. */
export type Outcomes = Readonly<Record<Sort, Readonly<Record<string, number>>>>
