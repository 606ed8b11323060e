import { it } from "@effect/vitest"
import { Effect } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { GenesisConsensus, WrongChain } from "../../../src/Chains/providers/chainIdentity.ts"
import type { Provider, Providers } from "../../../src/Chains/providers/Providers.ts"
import type { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import { hash, Node, providersOf, quiet } from "../providing.ts"

type Steps = (nodes: {
  readonly a: Node
  readonly b: Node
  readonly c: Node
  /** The providers of so many of the nodes. */
  readonly providers: Providers
  /** The provider of one of them. */
  readonly of: (node: Node) => Provider
  /** Which chain they take theirs for. */
  readonly agree: Effect.Effect<GenesisConsensus, RpcError | WrongChain>
}) => Generator<YieldWrap<Effect.Effect<unknown, unknown>>, void, never>

const testOn = (genesis: string | undefined) => (title: string, count: 1 | 2 | 3, steps: Steps) =>
  it.effect(title, () => {
    const [a, b, c] = [new Node("a"), new Node("b"), new Node("c")]
    return Effect.gen(function* () {
      const providers = yield* providersOf([a, b, c].slice(0, count), genesis)
      const of = ({ client: { host } }: Node) => {
        const found = providers.all.find(({ client }) => client.host === host)
        if (found === undefined) throw new Error(`no provider ${host}`)
        return found
      }
      const agree = Effect.flatMap(providers.current, providers.agree)
      yield* Effect.gen(() => steps({ a, b, c, providers, of, agree }))
    }).pipe(quiet)
  })

/** A test with the providers of a chain whose first block is stored. */
export const onNodes = testOn(hash("a"))

/** A test with the providers of a chain of which nothing is stored. */
export const onNewChain = testOn(undefined)
