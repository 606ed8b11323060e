import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Schedule } from "effect"
import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  erc20Abi,
  getAddress,
  type Hash,
  type Hex,
  multicall3Abi,
  numberToHex,
  pad,
  parseEther,
  toEventSelector
} from "viem"
import { Erc20 } from "../../src/Domain/Currency.ts"
import {
  batcherAbi,
  batcherAddress,
  localTokens,
  multicall3Contract,
  reverterAbi,
  reverterAddress
} from "../../src/Sandbox/Contracts.ts"
import { type LocalChain, type LocalChainOptions, startLocalChain } from "../../src/Sandbox/LocalChain.ts"

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
const alice: Address = "0x00000000000000000000000000000000000A11cE"
const bob: Address = "0x0000000000000000000000000000000000000B0b"

const start = (options: Partial<LocalChainOptions> = {}) =>
  startLocalChain({ chain: "ethereum", chainId: 31_337, tokens: Erc20.literals, ...options })

const receiptOf = (chain: LocalChain, hash: Hash) => chain.rpc<Receipt | null>("eth_getTransactionReceipt", [hash])

const minedReceipt = (chain: LocalChain, hash: Hash) =>
  Effect.flatMap(receiptOf(chain, hash), (receipt) =>
    receipt === null ? Effect.dieMessage(`${hash} is not in a block`) : Effect.succeed(receipt)
  )

const call = (chain: LocalChain, to: Address, data: Hex) => chain.rpc<Hex>("eth_call", [{ to, data }, "latest"])

describe("payments", () => {
  it.scopedLive("wait in the pool until a block is mined, and move wei", () =>
    Effect.gen(function* () {
      const chain = yield* start()
      const before = yield* chain.head
      const hash = yield* chain.payNative({ to: alice, amount: parseEther("1.5") })
      expect(yield* receiptOf(chain, hash)).toBeNull()
      expect(yield* chain.balance(alice)).toBe(0n)
      yield* chain.mine()
      expect((yield* minedReceipt(chain, hash)).status).toBe("0x1")
      expect(yield* chain.balance(alice)).toBe(parseEther("1.5"))
      expect((yield* chain.head).number).toBe(before.number + 1)
    })
  )

  it.scopedLive("move every token, with a log of the token's own address", () =>
    Effect.gen(function* () {
      const chain = yield* start()
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
        expect(
          Number(yield* call(chain, address, encodeFunctionData({ abi: erc20Abi, functionName: "decimals" })))
        ).toBe(decimals)
      }
    })
  )

  it.scopedLive("answer as the real tokens do: USDT with nothing, USDC through a proxy", () =>
    Effect.gen(function* () {
      const chain = yield* start()
      const nothing = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [alice, 0n] })
      expect(yield* call(chain, localTokens.USDT.address, nothing)).toBe("0x")
      expect(BigInt(yield* call(chain, localTokens.DAI.address, nothing))).toBe(1n)
      expect(BigInt(yield* call(chain, localTokens.USDC.address, nothing))).toBe(1n)
      const slot = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
      const implementation = yield* chain.rpc<Hex>("eth_getStorageAt", [localTokens.USDC.address, slot, "latest"])
      const code = yield* chain.rpc<Hex>("eth_getCode", [`0x${implementation.slice(-40)}`, "latest"])
      expect(code.length).toBeGreaterThan(1000)
    })
  )

  it.scopedLive("asked for at once get a transaction each", () =>
    Effect.gen(function* () {
      const chain = yield* start()
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
  )

  it.scopedLive("and blocks come in the order in which they were asked for", () =>
    Effect.gen(function* () {
      const chain = yield* start({ tokens: [] })
      const { number } = yield* chain.head
      const payAndMine = Array.from({ length: 20 }, () => [chain.payNative({ to: alice, amount: 1n }), chain.mine()])
      yield* Effect.all(payAndMine.flat(), { concurrency: "unbounded" })
      for (let n = number + 1; n <= number + 20; n++) {
        expect(yield* chain.rpc("eth_getBlockTransactionCountByNumber", [numberToHex(n)])).toBe("0x1")
      }
    })
  )

  it.scopedLive("are mined without being asked when the chain has a block time", () =>
    Effect.gen(function* () {
      const chain = yield* start({ blockTime: 1 })
      const hash = yield* chain.payNative({ to: alice, amount: 1n })
      yield* receiptOf(chain, hash).pipe(
        Effect.repeat({ until: (receipt) => receipt !== null, schedule: Schedule.spaced("20 millis") }),
        Effect.timeout("10 seconds")
      )
      expect((yield* minedReceipt(chain, hash)).status).toBe("0x1")
    })
  )
})

describe("reorg", () => {
  it.scopedLive("of two blocks drops a transfer for good, and its raw form brings it back", () =>
    Effect.gen(function* () {
      const chain = yield* start()
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
  )

  it.scopedLive("of empty blocks gives other hashes, and a snapshot takes the head back", () =>
    Effect.gen(function* () {
      const chain = yield* start()
      yield* chain.mine(3, 12)
      const before = yield* chain.head
      yield* chain.reorg(1)
      expect((yield* chain.head).hash).not.toBe(before.hash)
      const snapshot = yield* chain.snapshot
      const kept = yield* chain.head
      yield* chain.mine(2, 12)
      expect(yield* chain.head).toMatchObject({ number: kept.number + 2, timestamp: kept.timestamp + 24 })
      yield* chain.revert(snapshot)
      expect(yield* chain.head).toEqual(kept)
    })
  )
})

describe("contracts", () => {
  it.scopedLive("Multicall3 answers at its usual address", () =>
    Effect.gen(function* () {
      const chain = yield* start({ tokens: [] })
      yield* chain.payNative({ to: alice, amount: 5n })
      yield* chain.mine()
      const functionName = "getEthBalance"
      const data = encodeFunctionData({ abi: multicall3Abi, functionName, args: [alice] })
      const target = { target: multicall3Contract.address, allowFailure: true, callData: data }
      const answer = yield* call(
        chain,
        multicall3Contract.address,
        encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [[target, target]] })
      )
      const results = decodeFunctionResult({ abi: multicall3Abi, functionName: "aggregate3", data: answer })
      expect(results.map(({ returnData }) => BigInt(returnData))).toEqual([5n, 5n])
    })
  )

  it.scopedLive("the Batcher pays many at once, pays without naming the payee, and fakes", () =>
    Effect.gen(function* () {
      const chain = yield* start()
      const batch = (data: Hex, value = 0n) => chain.send({ to: batcherAddress, data, value })
      const batched = yield* batch(
        encodeFunctionData({
          abi: batcherAbi,
          functionName: "sendEther",
          args: [
            [alice, bob],
            [1n, 2n]
          ]
        }),
        3n
      )
      const tokens = yield* batch(
        encodeFunctionData({
          abi: batcherAbi,
          functionName: "sendTokens",
          args: [
            Erc20.literals.map((symbol) => localTokens[symbol].address),
            [alice, alice, bob, bob],
            [1n, 2n, 3n, 4n]
          ]
        })
      )
      const fake = yield* batch(
        encodeFunctionData({ abi: batcherAbi, functionName: "fakeTransfer", args: [bob, alice, 9n] })
      )
      yield* batch(encodeFunctionData({ abi: batcherAbi, functionName: "keep", args: [1n, alice] }), 10n)
      yield* chain.mine()
      const releasing = yield* batch(encodeFunctionData({ abi: batcherAbi, functionName: "release", args: [1n, 10n] }))
      yield* chain.mine()

      expect((yield* minedReceipt(chain, batched)).logs).toEqual([])
      expect(yield* chain.balance(bob)).toBe(2n)
      expect(yield* chain.balance(alice)).toBe(11n)
      const released = yield* chain.rpc<{ input: Hex }>("eth_getTransactionByHash", [releasing])
      expect(released.input).not.toContain(alice.slice(2).toLowerCase())
      const toPayees = (yield* minedReceipt(chain, tokens)).logs.filter((log) => BigInt(log.topics[1] ?? 0) !== 0n)
      expect(toPayees.map((log) => [getAddress(log.address), BigInt(log.data)])).toEqual(
        Erc20.literals.map((symbol, i) => [localTokens[symbol].address, BigInt(i + 1)])
      )
      const faked = (yield* minedReceipt(chain, fake)).logs[0]
      expect(getAddress(faked?.address ?? "0x")).toBe(batcherAddress)
      expect(faked?.topics).toEqual([transferTopic, pad(bob).toLowerCase(), pad(alice).toLowerCase()])
    })
  )

  it.scopedLive("the Reverter fails, or succeeds and pays nobody", () =>
    Effect.gen(function* () {
      const chain = yield* start({ tokens: [] })
      const failing = yield* chain.payNative({ to: reverterAddress, amount: 1n })
      const data = encodeFunctionData({ abi: reverterAbi, functionName: "swallow", args: [alice] })
      const swallowing = yield* chain.send({ to: reverterAddress, data, value: 4n })
      yield* chain.mine()
      expect((yield* minedReceipt(chain, failing)).status).toBe("0x0")
      expect((yield* minedReceipt(chain, swallowing)).status).toBe("0x1")
      expect(yield* chain.balance(alice)).toBe(0n)
    })
  )
})
