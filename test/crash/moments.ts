import { Array as Arr, Effect, Random } from "effect"

/**
 * What a moment is counted in: changes of the daemon's files while it starts, payments that it acknowledged, webhooks
 * that arrived, webhooks that wait for their answer, changes of its files under load. None of it is time, so that a slow
 * machine has the same moments as a fast one.
 */
export const kinds = ["starting", "acknowledged", "arrived", "held", "written"] as const
export type Kind = (typeof kinds)[number]

/** So many payments are to be made in each life of the daemon: more than any moment needs. */
export const ordersOfALife = 120

/** Unanswered webhooks of a path at most: fewer than an endpoint has at once, or nothing else would go there. */
export const heldOfAPath = 4

const latest: Readonly<Record<Kind, number>> = {
  starting: 30,
  acknowledged: 80,
  arrived: 120,
  held: 2 * heldOfAPath,
  written: 60
}

/** When the daemon is killed: after the `n`-th of a kind in this life. */
export interface Moment {
  readonly kind: Kind
  readonly n: number
  /** One webhook in so many is not answered. */
  readonly holdEvery: number
}

/** The moments of a seed. Of many, each kind has its share. */
export const moments = (kills: number, seed: number): Effect.Effect<ReadonlyArray<Moment>> =>
  Effect.gen(function* () {
    const shuffled = yield* Random.shuffle(Arr.makeBy(kills, (i) => kinds[i % kinds.length] ?? "starting"))
    return yield* Effect.forEach(
      shuffled,
      (kind) =>
        Effect.all(
          {
            kind: Effect.succeed(kind),
            n: Random.nextIntBetween(1, latest[kind] + 1),
            holdEvery: Random.nextIntBetween(2, 10)
          },
          { concurrency: 1 }
        ),
      { concurrency: 1 }
    )
  }).pipe(Effect.withRandom(Random.make(seed)))
