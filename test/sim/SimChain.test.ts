import { encodeFunctionData, type Hex, multicall3Abi } from "viem"
import { expect, it } from "vitest"
import { mayContain } from "../../src/Chains/scan/bloom.ts"
import { accountAt } from "./Block.ts"
import { bloomOf } from "./bloom.ts"
import { answer, type View } from "./node.ts"
import { SimChain } from "./SimChain.ts"
import { addressOf, paymaster, type Transaction, transaction, transferLog } from "./transactions.ts"

const alice = addressOf("alice")
const token = addressOf("a token")
const shape = { name: "test", interval: 2_000, safe: 2, finalized: 4 }
const now = 1_700_000_000_000

const chainWith = (...transactions: ReadonlyArray<Transaction>) => {
  const chain = new SimChain(shape, 10, now)
  chain.submit(...transactions)
  chain.mineUntil(now + shape.interval)
  return chain
}
const view = (chain: SimChain, over: Partial<View> = {}): View => ({
  chain,
  chainId: 7,
  head: chain.head,
  overrides: true,
  traces: true,
  tags: true,
  layer2: false,
  stateDepth: 5,
  ...over
})
const asked = (chain: SimChain, method: string, ...params: ReadonlyArray<unknown>) =>
  answer(view(chain), { method, params })

it("the bloom holds what the logs name, and not much else", () => {
  const log = transferLog(token, alice, 5n)
  const bloom = bloomOf([log.address, ...log.topics])
  const [transfer = "", , to = ""] = log.topics
  expect(mayContain(bloom, { address: [token], topics: [transfer, null, [to]] })).toBe(true)
  expect(mayContain(bloom, { address: [addressOf("another token")], topics: [transfer] })).toBe(false)
  expect(mayContain(bloomOf([]), { address: [token], topics: [transfer] })).toBe(false)
  // A bloom is sparse: three bits for each of four items.
  const bits = [...Buffer.from(bloom.slice(2), "hex")].reduce(
    (sum, byte) => sum + byte.toString(2).replaceAll("0", "").length,
    0
  )
  expect(bits).toBeGreaterThan(8)
  expect(bits).toBeLessThan(13)
})

it("money is where transactions put it, less what they cost", () => {
  const chain = chainWith(
    transaction("plain", { to: alice, value: 10n ** 15n }),
    transaction("failed", { to: alice, value: 7n, fails: true }),
    transaction("inside", {
      to: paymaster,
      value: 5n,
      inner: [{ type: "CALL", from: paymaster, to: alice, value: 5n }]
    }),
    transaction("spend", { from: alice, to: addressOf("bob"), value: 3n, l1Fee: 11n })
  )
  const cost = 21_000n * 1_000_000_000n + 11n
  expect(accountAt(chain.head, alice)).toEqual({ balance: 10n ** 15n + 5n - 3n - cost, nonce: 1 })
  expect(chain.head.credits.filter(({ address }) => address === alice).map(({ amount }) => amount)).toEqual([
    10n ** 15n,
    5n
  ])
  expect(asked(chain, "eth_getBalance", alice, "latest")).toBe(`0x${(10n ** 15n + 2n - cost).toString(16)}`)
  expect(asked(chain, "eth_getBalance", alice, "0x9")).toBe("0x0")
  expect(() => asked(chain, "eth_getBalance", alice, "0x1")).toThrow("missing trie node")
})

it("removed money cannot be spent", () => {
  const chain = chainWith(transaction("in", { to: alice, value: 10n ** 15n }))
  chain.submit(transaction("out", { from: alice, to: token, value: 1n }))
  chain.mineMany(1, now)
  chain.reorg(2, 0, now, ({ from }) => (from === alice ? "again" : "never"))
  expect(accountAt(chain.head, alice)).toEqual({ balance: 0n, nonce: 0 })
  expect(chain.head.transactions).toEqual([])
})

it("a reorg has blocks of its own, and mines again in another order", () => {
  const chain = chainWith(
    transaction("first", { to: token, logs: [transferLog(token, alice, 1n)] }),
    transaction("second", { to: token, logs: [transferLog(token, alice, 2n)] })
  )
  const before = chain.head
  chain.reorg(1, 1, now, () => "again")
  expect(chain.head.number).toBe(before.number + 1)
  expect(chain.at(before.number)?.hash).not.toBe(before.hash)
  expect(chain.at(before.number)?.parent).toBe(before.parent)
  expect(chain.byHash.get(before.hash)).toBe(before)
  const again = [chain.at(before.number), chain.head].flatMap((block) => block?.credits ?? [])
  expect(again.map(({ amount }) => amount)).toEqual([2n, 1n])
})

it("both ways of reading balances agree", () => {
  const chain = chainWith(transaction("in", { to: alice, value: 1234n }))
  const word = (value: bigint) => value.toString(16).padStart(64, "0")
  const packed = `0x${alice.slice(2)}${token.slice(2)}`
  expect(asked(chain, "eth_call", { to: paymaster, data: packed }, "latest", { [paymaster]: { code: "0x00" } })).toBe(
    `0x${word(1234n)}${word(0n)}`
  )
  const calls = [alice, token].map((address) => ({
    target: "0xca11bde05977b3631167028862be2a173976ca11" as Hex,
    allowFailure: false,
    callData: encodeFunctionData({ abi: multicall3Abi, functionName: "getEthBalance", args: [address as Hex] })
  }))
  const data = encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [calls] })
  const to = "0xcA11bde05977b3631167028862bE2a173976CA11"
  const words = String(asked(chain, "eth_call", { to, data }, { blockHash: chain.head.hash }))
    .slice(2)
    .match(/.{64}/g)
  expect(words?.map((one) => BigInt(`0x${one}`))).toEqual(
    // The list, its length, where its two entries are, and each: whether it went well, and its bytes.
    [32n, 2n, 64n, 192n, 1n, 64n, 32n, 1234n, 1n, 64n, 32n, 0n]
  )
})
