import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { type Address, encodeFunctionData, getAddress, type Hash, type Hex, numberToHex, pad } from "viem"
import { abilitiesOf } from "../../src/Chains/packedBalances.ts"
import { makeClient, Rpc, type RpcClient, RpcError, type RpcRequest } from "../../src/Chains/Rpc.ts"
import type { BlockRef } from "../../src/Domain/Receipt.ts"
import { batcherAbi, batcherAddress, multicall3, reverterAbi, reverterAddress } from "../../src/Sandbox/Contracts.ts"
import { type LocalChain, startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { depsOf, inStore, owe, round, scanTo, told } from "./oracleWorld.ts"

const ether = 10n ** 18n
const address = (n: number): Address => getAddress(pad(numberToHex(0xba1a00000n + BigInt(n)), { size: 20 }))
const startChain = startLocalChain({ chain: "base", chainId: 31_337, tokens: [] })

const headOf = (chain: LocalChain) =>
  Effect.map(chain.head, ({ hash, number, timestamp }): BlockRef => ({ hash, number, time: timestamp }))

const clientOf = (chain: LocalChain) => Effect.map(Rpc, (rpc) => rpc.client(Redacted.make(chain.url)))

/** A provider that refuses some calls, and counts the others. */
const refusing = (
  client: RpcClient,
  refuses: (call: RpcRequest) => boolean,
  reason: RpcError["reason"] = "refused"
) => {
  const made: Array<RpcRequest> = []
  const provider = makeClient({
    host: "choosy",
    counters: client.counters,
    sendEach: (calls) => {
      made.push(...calls)
      const refused = calls.find(refuses)
      return refused === undefined
        ? client.sendEach(calls)
        : new RpcError({ host: "choosy", method: refused.method, reason, detail: "as the test wants" })
    }
  })
  return { provider, made }
}

/** Calls by their methods. */
const methods = (made: ReadonlyArray<RpcRequest>) => made.map(({ method }) => method)

const batch = (to: ReadonlyArray<Address>, amounts: ReadonlyArray<bigint>) => ({
  to: batcherAddress,
  value: amounts.reduce((a, b) => a + b, 0n),
  data: encodeFunctionData({ abi: batcherAbi, functionName: "sendEther", args: [to, amounts] })
})

/** Deposits `amount` for a payee, in a block of its own; what `release` sends names nobody. */
const keep = Effect.fnUntraced(function* (chain: LocalChain, id: bigint, payee: Address, amount: bigint) {
  yield* chain.send({
    to: batcherAddress,
    value: amount,
    data: encodeFunctionData({ abi: batcherAbi, functionName: "keep", args: [id, payee] })
  })
  yield* chain.mine()
})
const release = (id: bigint, amount: bigint) => ({
  to: batcherAddress,
  data: encodeFunctionData({ abi: batcherAbi, functionName: "release", args: [id, amount] })
})

/** A contract that holds `amount`, and gives it to `heir` when it is called. */
const doomed = Effect.fnUntraced(function* (chain: LocalChain, at: Address, heir: Address, amount: bigint) {
  // PUSH1 0, SLOAD, SELFDESTRUCT
  yield* chain.rpc("anvil_setCode", [at, "0x600054ff"])
  yield* chain.rpc("anvil_setStorageAt", [at, "0x0", pad(heir.toLowerCase() as Hex, { size: 32 })])
  yield* chain.rpc("anvil_setBalance", [at, numberToHex(amount)])
})

/** A transaction by the owner of a watched address. */
const spend = Effect.fnUntraced(function* (chain: LocalChain, from: Address, value: bigint, over: object = {}) {
  yield* chain.rpc("anvil_impersonateAccount", [from])
  return yield* chain.rpc<Hash>("eth_sendTransaction", [
    {
      from,
      to: address(999),
      value: numberToHex(value),
      gas: numberToHex(100_000),
      maxFeePerGas: numberToHex(10n ** 11n),
      maxPriorityFeePerGas: numberToHex(10n ** 9n),
      ...over
    }
  ])
})

const onChain = <A, E, R>(test: (chain: LocalChain, client: RpcClient) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const chain = yield* startChain
    return yield* test(chain, yield* clientOf(chain))
  }).pipe(Effect.provide(Rpc.layer), inStore)

describe("native money, against a real node", () => {
  it.scopedLive("is found however it comes, in its block, with its transaction", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        const deps = depsOf(client)
        yield* scanTo(yield* headOf(chain))
        for (let n = 0; n < 7; n++) yield* owe(address(n))
        const bomb = address(100)
        yield* doomed(chain, bomb, address(3), 4n * ether)
        yield* keep(chain, 1n, address(2), 3n * ether)

        yield* chain.payNative({ to: address(0), amount: ether })
        const batched = yield* chain.send(batch([address(1), address(4)], [2n, 5n * ether]))
        yield* chain.mine()
        const first = (yield* chain.head).number
        yield* chain.mine(3)
        const released = yield* chain.send(release(1n, 3n * ether))
        const destroyed = yield* chain.send({ to: bomb })
        // A second transaction of the block names nobody either.
        yield* chain.send(release(1n, 0n))
        yield* chain.mine()
        const second = (yield* chain.head).number
        // Fails, and carries its value; pays and takes it back; says that it pays.
        yield* chain.send({ to: reverterAddress, value: ether })
        yield* chain.send({
          to: reverterAddress,
          value: ether,
          data: encodeFunctionData({ abi: reverterAbi, functionName: "swallow", args: [address(5)] })
        })
        yield* chain.mine(2)

        const { stored, touched } = yield* round(deps, yield* headOf(chain))
        expect(stored).toBe(true)
        expect(touched.length).toBe(5)
        expect(yield* told(address(0))).toEqual([`${first} tx:0 ${ether}`])
        expect(yield* told(address(1))).toEqual([`${first} call:${batched} 2`])
        expect(yield* told(address(4))).toEqual([`${first} call:${batched} ${5n * ether}`])
        expect(yield* told(address(2))).toEqual([`${second} call:${released} ${3n * ether}`])
        expect(yield* told(address(3))).toEqual([`${second} call:${destroyed} ${4n * ether}`])
        expect(yield* told(address(5))).toEqual([])
        expect(yield* told(address(6))).toEqual([])
        expect(abilitiesOf(client)).toEqual({ override: true, trace: true })

        // Nothing new: the next round finds nothing, by a single call.
        yield* chain.mine()
        const { made, provider } = refusing(client, () => false)
        const quiet = yield* round(depsOf(provider), yield* headOf(chain))
        expect(quiet.reading.transfers).toEqual([])
        expect(methods(made)).toEqual(["eth_call"])
      })
    )
  )

  it.scopedLive("is found while the merchant collects, before, after and in the same block", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        const deps = depsOf(client)
        const alice = address(0)
        yield* scanTo(yield* headOf(chain))
        yield* owe(alice)
        yield* keep(chain, 1n, alice, 10n * ether)
        yield* chain.payNative({ to: alice, amount: 4n * ether })
        yield* chain.mine()
        const paid = (yield* chain.head).number
        yield* chain.mine(2)
        yield* spend(chain, alice, ether)
        yield* chain.mine(2)
        const released = yield* chain.send(release(1n, 2n * ether))
        const direct = yield* chain.payNative({ to: alice, amount: ether })
        yield* spend(chain, alice, ether)
        // A transaction of the owner's that fails costs its fee and not its value.
        yield* spend(chain, alice, ether, { to: reverterAddress })
        yield* chain.mine()
        const mixed = (yield* chain.head).number
        const index = (yield* chain.rpc<{ transactionIndex: Hex }>("eth_getTransactionReceipt", [direct]))
          .transactionIndex
        yield* chain.mine(3)
        yield* round(deps, yield* headOf(chain))
        const expected = [
          `${paid} tx:0 ${4n * ether}`,
          `${mixed} call:${released} ${2n * ether}`,
          `${mixed} tx:${Number(index)} ${ether}`
        ]
        expect(yield* told(alice)).toEqual(expected)

        // Everything is collected, and nothing of it is an alarm.
        yield* spend(chain, alice, 4n * ether)
        yield* chain.mine(2)
        expect((yield* round(deps, yield* headOf(chain))).reading.transfers).toEqual([])
        // What comes later is found from the new balance on.
        yield* chain.payNative({ to: alice, amount: 7n })
        yield* chain.mine()
        yield* round(deps, yield* headOf(chain))
        expect(yield* told(alice)).toEqual([...expected, `${(yield* chain.head).number} tx:0 7`])
      })
    )
  )

  it.scopedLive("is found at the deadline although as much was spent between two looks", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        const deps = depsOf(client)
        const alice = address(0)
        yield* scanTo(yield* headOf(chain))
        const expiresAt = (yield* chain.head).timestamp + 3600
        yield* owe(alice, { expiresAt })
        yield* chain.mine()
        yield* round(deps, yield* headOf(chain))
        yield* chain.payNative({ to: alice, amount: ether })
        yield* chain.mine()
        const paid = (yield* chain.head).number
        // The owner sends all of it but the fee, and the fee is a gift of somebody's.
        yield* spend(chain, alice, ether / 2n)
        yield* chain.mine()
        const left = yield* chain.balance(alice)
        const all = left - 21_000n * 10n ** 11n
        yield* spend(chain, alice, all, { maxPriorityFeePerGas: numberToHex(10n ** 11n), gas: numberToHex(21_000) })
        yield* chain.mine()
        expect(yield* chain.balance(alice)).toBe(0n)
        expect((yield* round(deps, yield* headOf(chain))).reading.transfers).toEqual([])

        yield* chain.mine(2, 3700)
        yield* round(deps, yield* headOf(chain))
        expect(yield* told(alice)).toEqual([`${paid} tx:0 ${ether}`])
      })
    )
  )

  it.scopedLive("that an address had before its payment is none of it", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        const alice = address(0)
        yield* chain.payNative({ to: alice, amount: 5n * ether })
        yield* chain.mine()
        yield* spend(chain, alice, ether)
        yield* chain.mine()
        yield* scanTo(yield* headOf(chain))
        yield* owe(alice)
        yield* chain.mine(2)
        yield* round(depsOf(client), yield* headOf(chain))
        expect(yield* told(alice)).toEqual([])
        yield* chain.payNative({ to: alice, amount: 6n })
        yield* chain.mine()
        yield* round(depsOf(client), yield* headOf(chain))
        expect(yield* told(alice)).toEqual([`${(yield* chain.head).number} tx:0 6`])
      })
    )
  )
})

const isOverride = ({ method, params }: RpcRequest) => method === "eth_call" && params.length > 2
const isMulticall = ({ method, params }: RpcRequest) => method === "eth_call" && params.length === 2

describe("what a provider lacks", () => {
  it.scopedLive("balances come by Multicall3 where overrides are refused, and one by one where that is not there", () =>
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
        expect(abilitiesOf(noOverride.provider)).toEqual({ override: false, multicall: true })

        // It is not asked again for what it has refused.
        noOverride.made.splice(0)
        yield* round(depsOf(noOverride.provider), head)
        expect(noOverride.made.map(isMulticall)).toEqual([true])

        yield* chain.rpc("anvil_setCode", [multicall3.address, "0x"])
        yield* chain.payNative({ to: address(2), amount: 12n })
        yield* chain.mine()
        const next = yield* headOf(chain)
        const neither = refusing(client, isOverride)
        yield* round(depsOf(neither.provider), next)
        expect(yield* told(address(2))).toEqual([`${next.number} tx:0 12`])
        expect(abilitiesOf(neither.provider)).toEqual({ override: false, multicall: false })
        neither.made.splice(0)
        yield* round(depsOf(neither.provider), next)
        expect(methods(neither.made)).toEqual(["eth_getBalance", "eth_getBalance", "eth_getBalance"])
      })
    )
  )

  it.scopedLive("a block is run again where traces are refused; another provider traces; nobody can", () =>
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
        expect(abilitiesOf(noTrace)).toEqual({ override: true, trace: false, simulate: true })

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
      })
    )
  )

  it.scopedLive("states: another provider has them, or the blocks of the interval tell", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        const start = yield* headOf(chain)
        yield* scanTo(start)
        for (let n = 0; n < 3; n++) {
          yield* owe(address(n))
          yield* keep(chain, BigInt(n), address(n), ether)
        }
        const isOld = ({ method, params }: RpcRequest) =>
          (method === "eth_getBalance" || method === "eth_getTransactionCount") && typeof params[1] === "string"
        const pruned = refusing(client, isOld, "state").provider

        const early = yield* chain.send(release(0n, 3n))
        yield* chain.mine()
        const first = (yield* chain.head).number
        yield* chain.mine(3)
        yield* round(depsOf(pruned, [client]), yield* headOf(chain))
        expect(yield* told(address(0))).toEqual([`${first} call:${early} 3`])

        yield* chain.payNative({ to: address(1), amount: 4n })
        yield* chain.mine()
        const second = (yield* chain.head).number
        const unnamed = yield* chain.send(release(1n, 6n))
        yield* chain.mine(4)
        const head = yield* headOf(chain)
        yield* round(depsOf(pruned), head)
        expect(yield* told(address(1))).toEqual([`${second} tx:0 4`, `${head.number} unattributed 6`])

        // What a provider with states finds later takes the place of what was kept for the interval.
        yield* chain.mine(2, 10)
        yield* round(depsOf(client), yield* headOf(chain))
        expect(yield* told(address(1))).toEqual([`${second} tx:0 4`, `${second + 1} call:${unnamed} 6`])
      })
    )
  )

  it.scopedLive("a node with 64 states of its own: after 300 blocks the newest of them still narrow it down", () =>
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
