import { it } from "@effect/vitest"
import { Effect, type Layer, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { ChainSettings } from "../../../src/Settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { around, aroundTwo, withTokens } from "../around.ts"
import { ModelChain, modelRpc } from "../ModelChain.ts"
import { notingSettlement, world } from "../world.ts"

type World = Layer.Layer.Success<ReturnType<typeof world<never, never, never>>> | Scope.Scope
type Test<Services> = Effect.Effect<void, unknown, Services>
type Step = YieldWrap<Effect.Effect<unknown, unknown, World>>
type Steps = (chain: ModelChain, other: ModelChain) => Generator<Step, void, never>

/** Settings of the chain, where they differ from `withTokens`. */
interface Options extends Partial<ChainSettings> {
  /** Number of the chain's head; 10 where it is absent. */
  readonly height?: number
}

const testIn =
  (
    provided: (
      chain: ModelChain,
      other: ModelChain,
      settings: ChainSettings
    ) => (test: Test<World>) => Test<Scope.Scope>
  ) =>
  (title: string, ...rest: readonly [Steps] | readonly [Options, Steps]) => {
    const [{ height = 10, ...over }, steps] = rest.length === 1 ? [{} as Options, rest[0]] : rest
    it.scoped(title, () => {
      const chain = new ModelChain(height)
      const other = chain.twin()
      return Effect.gen(() => steps(chain, other)).pipe(provided(chain, other, { ...withTokens, ...over }))
    })
  }

/**
 * A test with one model chain, whose settlement only records what is passed to it. Nothing is read before the test lets the
 * watchers run.
 */
export const onChain = testIn((chain, _, settings) => around(chain, settings))

/** The same as `onChain`, with two providers of the chain, each with faults of its own. */
export const onTwo = testIn(aroundTwo)

/** A world around several chains, each with a node of its own, by the node's URL. */
export const aroundChains =
  (chains: ReadonlyArray<ChainSettings>, nodes: Readonly<Record<string, ModelChain>>) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.flatMap(temporaryDatabase, (path) =>
      Effect.provide(test, world(path, chains, modelRpc(nodes), notingSettlement))
    )
