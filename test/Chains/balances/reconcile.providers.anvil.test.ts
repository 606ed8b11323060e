import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { capabilitiesOf } from "../../../src/Chains/rpc/capabilities.ts"
import { makeClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import { multicall3Contract } from "../../../src/Sandbox/Contracts.ts"
import { address, ether, headOf, keep, methods, onChain, refusing, release } from "./reconcileAnvil.ts"
import { depsOf, owe, round, scanTo, told } from "./reconcileWorld.ts"

const isOverride = ({ method, params }: RpcRequest) => method === "eth_call" && params.length > 2
const isMulticall = ({ method, params }: RpcRequest) => method === "eth_call" && params.length === 2

/** A simulation's result in which every log stands twice. */
const twice = (result: unknown): unknown => {
  const [{ calls }] = result as [{ calls: ReadonlyArray<{ logs?: ReadonlyArray<unknown> }> }]
  return [{ calls: calls.map(({ logs = [], ...call }) => ({ ...call, logs: [...logs, ...logs] })) }]
}

describe("what a provider lacks", () => {
  it.scopedLive("balances are read by Multicall3 where overrides are refused, and one by one without Multicall3", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        yield* scanTo(yield* headOf(chain))
        for (let n = 0; n < 3; n++) yield* owe(address(n))
        yield* chain.payNative({ to: address(1), amount: 11n })
        yield* chain.mine()
        const head = yield* headOf(chain)
        const noOverride = refusing(client, isOverride)
        yield* round(depsOf(noOverride.provider), head)
        expect(yield* told(address(1))).toEqual([`${head.number} tx:0 11`])
        expect(capabilitiesOf(noOverride.provider)).toEqual({ override: false, multicall: true })

        // It is not asked again for what it has refused.
        noOverride.made.splice(0)
        yield* round(depsOf(noOverride.provider), head)
        expect(noOverride.made.map(isMulticall)).toEqual([true])

        yield* chain.rpc("anvil_setCode", [multicall3Contract.address, "0x"])
        yield* chain.payNative({ to: address(2), amount: 12n })
        yield* chain.mine()
        const next = yield* headOf(chain)
        const neither = refusing(client, isOverride)
        yield* round(depsOf(neither.provider), next)
        expect(yield* told(address(2))).toEqual([`${next.number} tx:0 12`])
        expect(capabilitiesOf(neither.provider)).toEqual({ override: false, multicall: false })
        neither.made.splice(0)
        yield* round(depsOf(neither.provider), next)
        expect(methods(neither.made)).toEqual(["eth_getBalance", "eth_getBalance", "eth_getBalance"])
      })
    )
  )

  it.scopedLive(
    "a block is simulated where traces are refused; or another provider traces; or nothing is attributed",
    () =>
      onChain((chain, client) =>
        Effect.gen(function* () {
          const isTrace = ({ method }: RpcRequest) => method === "debug_traceTransaction"
          const isSimulation = ({ method }: RpcRequest) => method === "eth_simulateV1"
          yield* scanTo(yield* headOf(chain))
          for (let n = 0; n < 3; n++) {
            yield* owe(address(n))
            yield* keep(chain, BigInt(n), address(n), ether)
          }
          const bring = Effect.fnUntraced(function* (n: number, amount: bigint) {
            const hash = yield* chain.send(release(BigInt(n), amount))
            yield* chain.send(release(0n, 0n))
            yield* chain.mine()
            return { hash, head: yield* headOf(chain) }
          })
          const simulated = yield* bring(0, 3n)
          const { provider: noTrace } = refusing(client, isTrace, "unsupported")
          yield* round(depsOf(noTrace), simulated.head)
          expect(yield* told(address(0))).toEqual([`${simulated.head.number} call:${simulated.hash} 3`])
          expect(capabilitiesOf(noTrace)).toEqual({ override: true, trace: false, simulate: true })

          const neither = refusing(client, (call) => isTrace(call) || isSimulation(call), "unsupported").provider
          const byOther = yield* bring(1, 4n)
          yield* round(depsOf(neither, [client]), byOther.head)
          expect(yield* told(address(1))).toEqual([`${byOther.head.number} call:${byOther.hash} 4`])

          const byNobody = yield* bring(2, 5n)
          yield* round(depsOf(neither), byNobody.head)
          expect(yield* told(address(2))).toEqual([`${byNobody.head.number} unattributed 5`])

          // Once somebody can, its row takes the place of the other, and the total stays.
          yield* chain.mine(2, 10)
          const later = yield* round(depsOf(client), yield* headOf(chain))
          expect(later.reading.replaced.length).toBe(1)
          expect(yield* told(address(2))).toEqual([`${byNobody.head.number} call:${byNobody.hash} 5`])

          // A run that does not add up to what came is not believed: fees and the clock are not quite the same in it.
          const doubled = makeClient({
            ...noTrace,
            sendEach: (calls) =>
              Effect.map(noTrace.sendEach(calls), (replies) =>
                replies.map((reply, i) => (calls[i]?.method === "eth_simulateV1" ? Either.map(reply, twice) : reply))
              )
          })
          const { head: wrong } = yield* bring(0, 6n)
          yield* round(depsOf(doubled), wrong)
          expect((yield* told(address(0))).slice(1)).toEqual([`${wrong.number} unattributed 6`])
        })
      )
  )

  it.scopedLive("pruned states come from another provider, or the blocks of the interval are read", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        const start = yield* headOf(chain)
        yield* scanTo(start)
        for (let n = 0; n < 3; n++) {
          yield* owe(address(n))
          yield* keep(chain, BigInt(n), address(n), ether)
        }
        let newest: unknown
        const isOld = ({ method, params: [, at] }: RpcRequest) =>
          (method === "eth_getBalance" || method === "eth_getTransactionCount") &&
          (at as { readonly blockHash?: unknown }).blockHash !== newest
        const headNow = Effect.map(headOf(chain), (head) => {
          newest = head.hash
          return head
        })
        const pruned = refusing(client, isOld, "state").provider

        const early = yield* chain.send(release(0n, 3n))
        yield* chain.mine()
        const first = (yield* chain.head).number
        yield* chain.mine(3)
        yield* round(depsOf(pruned, [client]), yield* headNow)
        expect(yield* told(address(0))).toEqual([`${first} call:${early} 3`])

        yield* chain.payNative({ to: address(1), amount: 4n })
        yield* chain.mine()
        const second = (yield* chain.head).number
        const unnamed = yield* chain.send(release(1n, 6n))
        yield* chain.mine(4)
        const head = yield* headNow
        yield* round(depsOf(pruned), head)
        expect(yield* told(address(1))).toEqual([`${second} tx:0 4`, `${head.number} unattributed 6`])

        // What a provider with states finds later takes the place of what was kept for the interval.
        yield* chain.mine(2, 10)
        yield* round(depsOf(client), yield* headOf(chain))
        expect(yield* told(address(1))).toEqual([`${second} tx:0 4`, `${second + 1} call:${unnamed} 6`])
      })
    )
  )

  it.scopedLive("a node that keeps 64 states still narrows the search down after 300 blocks", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        yield* scanTo(yield* headOf(chain))
        yield* owe(address(0))
        yield* keep(chain, 0n, address(0), ether)
        yield* chain.payNative({ to: address(0), amount: 3n })
        yield* chain.mine()
        const direct = (yield* chain.head).number
        yield* chain.mine(300)
        const released = yield* chain.send(release(0n, 5n))
        yield* chain.mine(20)
        const head = yield* headOf(chain)
        yield* round(depsOf(client), head)
        expect(yield* told(address(0))).toEqual([`${direct} tx:0 3`, `${head.number - 19} call:${released} 5`])
      })
    )
  )
})
