import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Address, encodeFunctionData, type Hash, type Hex, numberToHex, pad } from "viem"
import { capabilitiesOf } from "../../../src/Chains/rpc/capabilities.ts"
import { batcherAbi, batcherAddress, reverterAbi, reverterAddress } from "../../../src/Sandbox/Contracts.ts"
import type { LocalChain } from "../../../src/Sandbox/LocalChain.ts"
import { address, ether, headOf, keep, methods, onChain, refusing, release } from "./reconcileAnvil.ts"
import { depsOf, owe, round, scanTo, told } from "./reconcileWorld.ts"

const batch = (to: ReadonlyArray<Address>, amounts: ReadonlyArray<bigint>) => ({
  to: batcherAddress,
  value: amounts.reduce((a, b) => a + b, 0n),
  data: encodeFunctionData({ abi: batcherAbi, functionName: "sendEther", args: [to, amounts] })
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

  it.scopedLive("is found at the deadline although the same amount was spent between two rounds", () =>
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

  it.scopedLive("from before the payment does not count", () =>
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
