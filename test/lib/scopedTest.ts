import { it, layer, type Vitest } from "@effect/vitest"
import { Effect, type Layer, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"

type Body<R> = () => Generator<YieldWrap<Effect.Effect<unknown, unknown, R | Scope.Scope>>, unknown, never>

/** Tests with these services, built for each test. Time is the test clock's. */
export const scopedTest =
  <R, E>(services: Layer.Layer<R, E>) =>
  (title: string, body: Body<R>) =>
    it.scoped(title, () => Effect.gen(body).pipe(Effect.provide(services)))

/** Tests in real time with these services, built for each test. */
export const liveTestOn =
  <R, E>(services: Layer.Layer<R, E>) =>
  (title: string, body: Body<R>) =>
    it.scopedLive(title, () => Effect.gen(body).pipe(Effect.provide(services)))

/** A test in real time, which brings its services itself. */
export const liveTest = (title: string, body: Body<never>) => it.scopedLive(title, () => Effect.gen(body))

/** A test by the test's clock, which brings its services itself. */
export const clockTest = (title: string, body: Body<never>) => it.scoped(title, () => Effect.gen(body))

/** A suite in real time whose tests share these services. Its `it` is for tables of cases. */
export const liveSuite = <R, E>(
  services: Layer.Layer<R, E>,
  title: string,
  suite: (test: (title: string, body: Body<R>) => void, it: Vitest.MethodsNonLive<R, true>) => void
) =>
  layer(services, { excludeTestServices: true })(title, (it) =>
    suite((each, body) => it.scoped(each, () => Effect.gen(body)), it)
  )
