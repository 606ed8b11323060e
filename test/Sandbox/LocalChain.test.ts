import { execFile } from "node:child_process"
import { describe, expect, it } from "@effect/vitest"
import { Array as Arr, Context, Effect, Exit, Layer, Schedule, Scope } from "effect"
import {
  type Address,
  encodeFunctionData,
  erc20Abi,
  getAddress,
  type Hash,
  type Hex,
  numberToHex,
  pad,
  parseEther,
  toEventSelector
} from "viem"
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts"
import { Erc20 } from "../../src/Domain/Currency.ts"
import {
  batcherAddress,
  type LocalChain,
  type LocalChainOptions,
  localTokens,
  startLocalChain
} from "../../src/Sandbox/LocalChain.ts"
import { pay } from "../../src/Sandbox/pay.ts"
import { liveSuite, liveTest } from "../lib/scopedTest.ts"

interface Log {
  readonly address: Address
  readonly topics: ReadonlyArray<Hex>
  readonly data: Hex
}

interface Receipt {
  readonly status: Hex
  readonly blockHash: Hash
  readonly logs: ReadonlyArray<Log>
}

const transferTopic = toEventSelector("Transfer(address,address,uint256)")
const start = (options: Partial<LocalChainOptions> = {}) =>
  startLocalChain({ chain: "ethereum", chainId: 31_337, tokens: Erc20.literals, ...options })

const receiptOf = (chain: LocalChain, hash: Hash) => chain.rpc<Receipt | null>("eth_getTransactionReceipt", [hash])

const minedReceipt = (chain: LocalChain, hash: Hash) =>
  Effect.flatMap(receiptOf(chain, hash), (receipt) =>
    receipt === null ? Effect.dieMessage(`${hash} is not in a block`) : Effect.succeed(receipt)
  )

const call = (chain: LocalChain, to: Address, data: Hex) => chain.rpc<Hex>("eth_call", [{ to, data }, "latest"])

/** One chain for tests that do not depend on earlier payments. */
class SharedChain extends Context.Tag("test/SharedChain")<SharedChain, LocalChain>() {
  static readonly layer = Layer.scoped(SharedChain, start())
}

const payee = () => privateKeyToAddress(generatePrivateKey())

liveSuite(SharedChain.layer, "a local chain", (test) => {
  test("accepts concurrent payments of several commands, each with its own nonce", function* () {
    const chain = yield* SharedChain
    const to = payee()
    const payOnce = Effect.scoped(
      pay({ name: "ethereum", rpcUrl: chain.url, tokens: new Map() }, { currency: "ETH", amount: 7n, to })
    )
    const hashes = yield* Effect.all(Arr.replicate(payOnce, 8), { concurrency: "unbounded" })
    expect(new Set(hashes).size).toBe(8)
    yield* chain.mine()
    expect(yield* chain.balance(to)).toBe(56n)
  })

  test("keeps a payment in its pool until a block is mined, then moves the wei", function* () {
    const chain = yield* SharedChain
    const alice = payee()
    const before = yield* chain.head
    const hash = yield* chain.payNative({ to: alice, amount: parseEther("1.5") })
    expect(yield* receiptOf(chain, hash)).toBeNull()
    expect(yield* chain.balance(alice)).toBe(0n)
    yield* chain.mine()
    expect((yield* minedReceipt(chain, hash)).status).toBe("0x1")
    expect(yield* chain.balance(alice)).toBe(parseEther("1.5"))
    expect((yield* chain.head).number).toBe(before.number + 1)
  })

  test("moves every token, with a log of the token's own address", function* () {
    const chain = yield* SharedChain
    const alice = payee()
    for (const symbol of Erc20.literals) {
      const { address, decimals } = localTokens[symbol]
      const hash = yield* chain.payToken({ symbol, to: alice, amount: 1_234_567n })
      yield* chain.mine()
      const { status, logs } = yield* minedReceipt(chain, hash)
      expect(status).toBe("0x1")
      expect(logs).toHaveLength(1)
      expect(getAddress(logs[0]?.address ?? "0x")).toBe(address)
      expect(logs[0]?.topics).toEqual([transferTopic, logs[0]?.topics[1], pad(alice).toLowerCase()])
      expect(BigInt(logs[0]?.data ?? "0x")).toBe(1_234_567n)
      expect(yield* chain.tokenBalance(symbol, alice)).toBe(1_234_567n)
      expect(Number(yield* call(chain, address, encodeFunctionData({ abi: erc20Abi, functionName: "decimals" })))).toBe(
        decimals
      )
    }
  })

  test("has tokens that behave like the real ones: USDT returns nothing, USDC is behind a proxy", function* () {
    const chain = yield* SharedChain
    const alice = payee()
    const nothing = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [alice, 0n] })
    expect(yield* call(chain, localTokens.USDT.address, nothing)).toBe("0x")
    expect(BigInt(yield* call(chain, localTokens.DAI.address, nothing))).toBe(1n)
    expect(BigInt(yield* call(chain, localTokens.USDC.address, nothing))).toBe(1n)
    const slot = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
    const implementation = yield* chain.rpc<Hex>("eth_getStorageAt", [localTokens.USDC.address, slot, "latest"])
    const code = yield* chain.rpc<Hex>("eth_getCode", [`0x${implementation.slice(-40)}`, "latest"])
    expect(code.length).toBeGreaterThan(1000)
  })

  test("makes a transaction for each of many payments at once", function* () {
    const chain = yield* SharedChain
    const alice = payee()
    const bob = payee()
    const native = Effect.replicateEffect(chain.payNative({ to: alice, amount: 2n }), 150, {
      concurrency: "unbounded"
    })
    const tokens = Effect.replicateEffect(chain.payToken({ symbol: "USDT", to: bob, amount: 3n }), 150, {
      concurrency: "unbounded"
    })
    const hashes = yield* Effect.all([native, tokens], { concurrency: "unbounded" })
    expect(new Set(hashes.flat()).size).toBe(300)
    yield* chain.mine()
    expect(yield* chain.balance(alice)).toBe(300n)
    expect(yield* chain.tokenBalance("USDT", bob)).toBe(450n)
  })

  test("makes payments and blocks in the order in which they were asked for", function* () {
    const chain = yield* SharedChain
    const alice = payee()
    const { number } = yield* chain.head
    const payAndMine = Array.from({ length: 20 }, () => [chain.payNative({ to: alice, amount: 1n }), chain.mine()])
    yield* Effect.all(payAndMine.flat(), { concurrency: "unbounded" })
    for (let n = number + 1; n <= number + 20; n++) {
      expect(yield* chain.rpc("eth_getBlockTransactionCountByNumber", [numberToHex(n)])).toBe("0x1")
    }
  })

  test("permanently drops a transfer in a reorg of two blocks, until its raw form is sent again", function* () {
    const chain = yield* SharedChain
    const alice = payee()
    const bob = payee()
    const hash = yield* chain.payToken({ symbol: "USDC", to: alice, amount: 7n })
    yield* chain.mine(2)
    const first = yield* minedReceipt(chain, hash)
    const raw = yield* chain.rawTransaction(hash)
    const before = yield* chain.head

    yield* chain.reorg(2)
    const after = yield* chain.head
    expect(after.number).toBe(before.number)
    expect(after.hash).not.toBe(before.hash)
    expect(yield* chain.tokenBalance("USDC", alice)).toBe(0n)
    const orphanLogs = yield* Effect.exit(chain.rpc("eth_getLogs", [{ blockHash: first.blockHash }]))
    expect(Exit.isFailure(orphanLogs)).toBe(true)

    // Another payment and another block do not bring it back, and do not stand in its way.
    yield* chain.payToken({ symbol: "USDC", to: bob, amount: 1n })
    yield* chain.mine()
    expect(yield* receiptOf(chain, hash)).toBeNull()

    expect(yield* chain.sendRaw(raw)).toBe(hash)
    yield* chain.mine()
    const again = yield* minedReceipt(chain, hash)
    expect(again.status).toBe("0x1")
    expect(again.blockHash).not.toBe(first.blockHash)
    expect(yield* chain.tokenBalance("USDC", alice)).toBe(7n)
  })

  test("gives empty blocks other hashes in a reorg, and returns to a snapshot", function* () {
    const chain = yield* SharedChain
    yield* chain.mine(3, 12)
    const before = yield* chain.head
    yield* chain.reorg(1)
    expect((yield* chain.head).hash).not.toBe(before.hash)
    const snapshot = yield* chain.snapshot
    const kept = yield* chain.head
    yield* chain.mine(2, 12)
    const mined = yield* chain.head
    expect(mined.number).toBe(kept.number + 2)
    // The chain's clock goes on between two calls.
    expect(mined.timestamp).toBeGreaterThanOrEqual(kept.timestamp + 24)
    yield* chain.revert(snapshot)
    expect(yield* chain.head).toEqual(kept)
  })

  test("refuses a call with its own message", function* () {
    const chain = yield* SharedChain
    const error = yield* Effect.flip(chain.rpc("eth_noSuchThing"))
    expect(error).toMatchObject({ reason: "Refused", method: "eth_noSuchThing" })
    const unknown = `0x${"11".repeat(32)}` as const
    expect((yield* Effect.flip(chain.rawTransaction(unknown))).message).toContain(unknown)
  })

  test("names its port when another chain wants it", function* () {
    const { port } = yield* SharedChain
    const error = yield* Effect.flip(Effect.scoped(start({ tokens: [], port })))
    expect(error).toMatchObject({ _tag: "PortInUse", port })
    expect(error.message).toContain(`Port ${port} on 127.0.0.1 is in use, and the local chain ethereum needs it`)
  })
})

liveTest("a chain with a block time mines without being asked", function* () {
  const chain = yield* start({ blockTime: 1 })
  const hash = yield* chain.payNative({ to: payee(), amount: 1n })
  yield* receiptOf(chain, hash).pipe(
    Effect.repeat({ until: (receipt) => receipt !== null, schedule: Schedule.spaced("20 millis") })
  )
  expect((yield* minedReceipt(chain, hash)).status).toBe("0x1")
})

liveTest("five chains have contracts at the same addresses, and only the tokens asked for", function* () {
  const wanted: ReadonlyArray<ReadonlyArray<Erc20>> = [Erc20.literals, ["USDC", "DAI"], ["WBTC"], ["USDT"], []]
  const chains = yield* Effect.forEach(wanted, (tokens, i) => start({ tokens, chainId: 31_337 + i }), {
    concurrency: "unbounded"
  })
  for (const [i, chain] of chains.entries()) {
    expect(Number(yield* chain.rpc<Hex>("eth_chainId"))).toBe(31_337 + i)
    expect(Object.keys(chain.tokens)).toEqual(wanted[i])
    for (const symbol of Erc20.literals) {
      const code = yield* chain.rpc<Hex>("eth_getCode", [localTokens[symbol].address, "latest"])
      expect(code === "0x").toBe(chain.tokens[symbol] === undefined)
    }
    const batcher = yield* chain.rpc<Hex>("eth_getCode", [batcherAddress, "latest"])
    expect(batcher).not.toBe("0x")
  }
})

it.scopedLive.each<[string, Partial<LocalChainOptions>, string, RegExp]>([
  [
    "a missing binary",
    { binary: "/nowhere/anvil" },
    "AnvilMissing",
    /\/nowhere\/anvil is missing or cannot be run \(.*ENOENT\): run `npm install/
  ],
  ["an Anvil that ends", { hardfork: "tomorrow" }, "AnvilNotStarted", /tomorrow/]
])("%s is a clear error", ([, options, tag, message]) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(start(options))
    expect(error._tag).toBe(tag)
    expect(error.message).toMatch(message)
  })
)

describe("the process", () => {
  liveTest("ends with the scope, even while it is stopped", function* () {
    const scope = yield* Scope.make()
    const chain = yield* Scope.extend(start({ tokens: [] }), scope)
    process.kill(chain.pid, "SIGSTOP")
    // A thread that was on the other core may answer once more.
    const error = yield* Effect.flip(Effect.forever(chain.rpc("eth_chainId", [], "200 millis")))
    expect(error).toMatchObject({ _tag: "LocalRpcError", reason: "Deadline" })
    yield* Scope.close(scope, Exit.void)
    expect(() => process.kill(chain.pid, 0)).toThrow("ESRCH")
  })

  liveTest("that dies by itself is reported, and its RPC unreachable", function* () {
    const chain = yield* start({ tokens: [] })
    process.kill(chain.pid, "SIGTERM")
    expect(yield* chain.ended).toMatch(/SIGTERM|exit code/)
    expect(yield* Effect.flip(chain.head)).toMatchObject({ _tag: "LocalRpcError", reason: "Unreachable" })
  })
})

liveTest("contracts.json is what its sources compile to", function* () {
  const complaint = yield* Effect.async<string>((resume) => {
    execFile(process.execPath, ["scripts/contracts.mjs", "--check"], (error, _stdout, stderr) =>
      resume(Effect.succeed(error === null ? "" : stderr || error.message))
    )
  })
  expect(complaint).toBe("")
})
