import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { type Address, encodeFunctionData, getAddress, type Hash, type Hex, numberToHex, pad } from "viem"
import { capabilitiesOf } from "../../../src/Chains/rpc/capabilities.ts"
import { Rpc, type RpcClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import {
  batcherAbi,
  batcherAddress,
  type LocalChain,
  multicall3Contract,
  reverterAbi,
  reverterAddress,
  startLocalChain
} from "../../../src/Sandbox/LocalChain.ts"
import { nodeClient } from "../../sim/nodeClient.ts"
import { errorOf } from "../providing.ts"
import { depsOf, inStore, ledgerLines, owe, round, scanTo } from "./reconcileWorld.ts"
import { ofTrace } from "./story.ts"

const ether = 10n ** 18n
const address = (n: number): Address => getAddress(pad(numberToHex(0xba1a00000n + BigInt(n)), { size: 20 }))
const startChain = startLocalChain({ chain: "base", chainId: 31_337, tokens: [] })

const headOf = (chain: LocalChain) =>
  Effect.map(chain.head, ({ hash, number, timestamp }): BlockRef => ({ hash, number, time: timestamp }))

const clientOf = (chain: LocalChain) => Effect.map(Rpc, (rpc) => rpc.client(Redacted.make(chain.url)))

/** A provider that refuses some calls, and counts the others. */
const refusing = (client: RpcClient, refuses: (call: RpcRequest) => boolean, reason: RpcReason = "refused") => {
  const made: Array<RpcRequest> = []
  const provider = nodeClient("choosy", (calls) => {
    made.push(...calls)
    return calls.some(refuses) ? errorOf("choosy", reason) : client.sendEach(calls)
  })
  return { provider, made }
}

/** Calls by their methods. */
const methods = (made: ReadonlyArray<RpcRequest>) => made.map(({ method }) => method)

/** Deposits `amount` for a payee, in a separate block; what `release` sends names no address. */
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

const onChain = <A, E, R>(test: (chain: LocalChain, client: RpcClient) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const chain = yield* startChain
    return yield* test(chain, yield* clientOf(chain))
  }).pipe(Effect.provide(Rpc.layer), inStore)

const batch = (to: ReadonlyArray<Address>, amounts: ReadonlyArray<bigint>) => ({
  to: batcherAddress,
  value: amounts.reduce((a, b) => a + b, 0n),
  data: encodeFunctionData({ abi: batcherAbi, functionName: "sendEther", args: [to, amounts] })
})

/** A contract that holds `amount`, and pays it to `heir` when it is called. */
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

describe("native income, against a real node", () => {
  it.scopedLive("is found in its block with its transaction, whichever way it is sent", () =>
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
        // A second transaction of the block names no address either.
        yield* chain.send(release(1n, 0n))
        yield* chain.mine()
        const second = (yield* chain.head).number
        // Fails, and carries its value; pays and reverts; only claims to pay.
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
        expect(yield* ledgerLines(address(0))).toEqual([`${first} tx:0 ${ether}`])
        expect(yield* ledgerLines(address(1))).toEqual([`${first} call:${batched} 2`])
        expect(yield* ledgerLines(address(4))).toEqual([`${first} call:${batched} ${5n * ether}`])
        expect(yield* ledgerLines(address(2))).toEqual([`${second} call:${released} ${3n * ether}`])
        expect(yield* ledgerLines(address(3))).toEqual([`${second} call:${destroyed} ${4n * ether}`])
        expect(yield* ledgerLines(address(5))).toEqual([])
        expect(yield* ledgerLines(address(6))).toEqual([])
        expect(capabilitiesOf(client)).toEqual({ override: true, trace: true })

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
        expect(yield* ledgerLines(alice)).toEqual(expected)

        // Everything is collected, without an alarm.
        yield* spend(chain, alice, 4n * ether)
        yield* chain.mine(2)
        expect((yield* round(deps, yield* headOf(chain))).reading.transfers).toEqual([])
        // What comes later is found from the new balance on.
        yield* chain.payNative({ to: alice, amount: 7n })
        yield* chain.mine()
        yield* round(deps, yield* headOf(chain))
        expect(yield* ledgerLines(alice)).toEqual([...expected, `${(yield* chain.head).number} tx:0 7`])
      })
    )
  )
})

const isOverride = ({ method, params }: RpcRequest) => method === "eth_call" && params.length > 2
const isMulticall = ({ method, params }: RpcRequest) => method === "eth_call" && params.length === 2

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
        expect(yield* ledgerLines(address(1))).toEqual([`${head.number} tx:0 11`])
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
        expect(yield* ledgerLines(address(2))).toEqual([`${next.number} tx:0 12`])
        expect(capabilitiesOf(neither.provider)).toEqual({ override: false, multicall: false })
        neither.made.splice(0)
        yield* round(depsOf(neither.provider), next)
        expect(methods(neither.made)).toEqual(["eth_getBalance", "eth_getBalance", "eth_getBalance"])
      })
    )
  )

  it.scopedLive("a block is simulated where traces are refused", () =>
    onChain((chain, client) =>
      Effect.gen(function* () {
        yield* scanTo(yield* headOf(chain))
        yield* owe(address(0))
        yield* keep(chain, 0n, address(0), ether)
        const released = yield* chain.send(release(0n, 3n))
        yield* chain.send(release(0n, 0n))
        yield* chain.mine()
        const head = yield* headOf(chain)
        const { provider } = refusing(client, ofTrace, "unsupported")
        yield* round(depsOf(provider), head)
        expect(yield* ledgerLines(address(0))).toEqual([`${head.number} call:${released} 3`])
        expect(capabilitiesOf(provider)).toEqual({ override: true, trace: false, simulate: true })
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
        expect(yield* ledgerLines(address(0))).toEqual([`${direct} tx:0 3`, `${head.number - 19} call:${released} 5`])
      })
    )
  )
})
