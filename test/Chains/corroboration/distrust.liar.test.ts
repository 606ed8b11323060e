import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { Reader } from "../../../src/Sql.ts"
import { alice, aroundTwo, second, upTo, usdc, watchedPayment } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"

const receipts = Effect.flatMap(Reader, (reader) =>
  reader.all<{ amount: string; corroborated: number }>(
    "SELECT amount, corroborated FROM receipts ORDER BY block_number, amount"
  )
)

/** An invented transfer to alice, in the chain's block 11. */
const invented = ({ blocks }: ModelChain) => ({
  address: usdc,
  topics: [transferTopic, `0x${"0".repeat(64)}`, `0x${alice.slice(2).toLowerCase().padStart(64, "0")}`],
  data: `0x${"64".padStart(64, "0")}`,
  blockNumber: "0xb",
  blockHash: blocks[11]?.hash,
  transactionHash: `0x${"f".repeat(64)}`,
  logIndex: "0x7",
  removed: false
})

/** A node that reports it wherever it is asked. */
const lying = (chain: ModelChain) => {
  const transactionHash = `0x${"f".repeat(64)}`
  chain.distort = ({ method, params: [of] }, answer) => {
    if (chain.height < 11) return answer
    if (method === "eth_getTransactionReceipt" && of === transactionHash) {
      const log = invented(chain)
      return { transactionHash, blockHash: log.blockHash, blockNumber: "0xb", status: "0x1", logs: [log] }
    }
    if (method !== "eth_getLogs") return answer
    const { fromBlock, toBlock } = of as { fromBlock: string; toBlock: string }
    const here = Number(fromBlock) <= 11 && Number(toBlock) >= 11
    return here ? [...(answer as ReadonlyArray<unknown>), invented(chain)] : answer
  }
}

it.scoped("a provider that reported a transfer in the verification pass does not corroborate it too", () => {
  const first = new ModelChain(10)
  const liar = first.twin()
  lying(liar)
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    first.mineMany(31)
    for (let i = 0; i < 100; i++) yield* second
    yield* upTo(41)
    expect(yield* receipts).toEqual([{ amount: "100", corroborated: 0 }])
  }).pipe(aroundTwo(first, liar))
})

it.scoped("a provider that reported a transfer while it served does not corroborate it once another one serves", () => {
  const liar = new ModelChain(10)
  const other = liar.twin()
  lying(liar)
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    liar.mine()
    yield* second
    yield* upTo(11)
    expect(yield* receipts).toEqual([{ amount: "100", corroborated: 0 }])
    liar.failure = "unreachable"
    yield* second
    liar.failure = undefined
    liar.mineMany(5)
    for (let i = 0; i < 60; i++) yield* second
    yield* upTo(16)
    expect(yield* receipts).toEqual([{ amount: "100", corroborated: 0 }])
  }).pipe(aroundTwo(liar, other))
})

it.scoped("a provider with a longer branch of its own does not decide alone on a transfer in it", () => {
  const liar = new ModelChain(10)
  const honest = new ModelChain(10)
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    // From here on it mines a branch of its own.
    liar.rollback(0)
    liar.mineMany(20)
    liar.mine(token(usdc, alice, 100n))
    for (let i = 0; i < 300; i++) {
      liar.mineMany(2)
      honest.mine()
      yield* second
    }
    expect(yield* receipts).toEqual([{ amount: "100", corroborated: 0 }])
  }).pipe(aroundTwo(liar, honest))
})

it.scoped("coins that a provider invents for a real transaction are not corroborated", () => {
  const liar = new ModelChain(10)
  const other = liar.twin()
  const elsewhere = coin(`0x${"8".repeat(40)}`, 1n)
  liar.distort = ({ method, params: [number, full] }, answer) => {
    if (method !== "eth_getBlockByNumber" || full !== true || Number(number) !== 11) return answer
    const block = answer as { transactions: ReadonlyArray<object> }
    return { ...block, transactions: block.transactions.map((one) => ({ ...one, to: alice, value: "0x64" })) }
  }
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    liar.mine(elsewhere)
    liar.mineMany(5)
    for (let i = 0; i < 10; i++) yield* second
    yield* upTo(16)
    expect(yield* receipts).toEqual([{ amount: "100", corroborated: 0 }])
  }).pipe(aroundTwo(liar, other))
})

it.scoped(
  "a transfer that one provider reports with a wrong amount is refuted, and counts with the amount of the others",
  () => {
    const first = new ModelChain(10)
    const other = first.twin()
    first.distort = ({ method }, answer) =>
      method === "eth_getLogs"
        ? (answer as ReadonlyArray<object>).map((log) => ({ ...log, data: `0x${"1".padStart(64, "0")}` }))
        : answer
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      first.mine(token(usdc, alice, 5n))
      first.mineMany(30)
      for (let i = 0; i < 100; i++) yield* second
      yield* upTo(41)
      const reader = yield* Reader
      expect(
        yield* reader.all("SELECT amount, corroborated, canonical, refuted FROM receipts ORDER BY amount")
      ).toEqual([
        { amount: "1", corroborated: 0, canonical: 0, refuted: 1 },
        { amount: "5", corroborated: 1, canonical: 1, refuted: 0 }
      ])
    }).pipe(aroundTwo(first, other))
  }
)
