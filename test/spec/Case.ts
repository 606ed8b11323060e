import type { Effect } from "effect"

/** A test of what the document says. `R`: what it runs against. */
export interface Case<R> {
  /** Labels of the statements that it tests, each whole. */
  readonly covers: ReadonlyArray<string>
  readonly says: string
  readonly test: Effect.Effect<void, unknown, R>
}

export const states = <R>(
  covers: ReadonlyArray<string>,
  says: string,
  test: Effect.Effect<void, unknown, R>
): Case<R> => ({
  covers,
  says,
  test
})

/** Begins with what it tests. */
export const titleOf = ({ covers, says }: Pick<Case<never>, "covers" | "says">): string =>
  `${covers.join("; ")}: ${says}`
