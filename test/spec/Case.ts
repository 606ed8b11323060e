import { Effect, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"

/** A test of what the document says. `R`: what it runs against. */
export interface Case<R> {
  /** Labels of the statements that it tests, each whole. */
  readonly covers: ReadonlyArray<string>
  readonly says: string
  readonly test: Effect.Effect<unknown, unknown, R | Scope.Scope>
}

/** What a test does, step by step. */
export type Steps<R> = Generator<YieldWrap<Effect.Effect<unknown, unknown, R | Scope.Scope>>, unknown, never>

export const states = <R = never>(covers: ReadonlyArray<string>, says: string, steps: () => Steps<R>): Case<R> => ({
  covers,
  says,
  test: Effect.gen(steps)
})

/** Begins with what it tests. */
export const titleOf = ({ covers, says }: Pick<Case<never>, "covers" | "says">): string =>
  `${covers.join("; ")}: ${says}`
