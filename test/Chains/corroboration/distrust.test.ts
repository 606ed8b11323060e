import { expect } from "@effect/vitest"
import { rows } from "../../lib/rows.ts"
import { alice, next, second, upTo, usdc, watchedPayment } from "../around.ts"
import { inventing } from "../lying.ts"
import { coin, type ModelChain, token } from "../ModelChain.ts"
import { scanned, until } from "../world.ts"
import { corroborated, inventedLog, mineOn, openScene, seconds, withLogs } from "./scene.ts"

// What one of two providers has invented is not corroborated by it, whichever of the two serves.

const two = { nodes: 2 }

openScene(
  "a provider that reported a transfer in a verification pass does not corroborate it",
  two,
  function* (first, liar) {
    inventing(liar)
    yield* watchedPayment(alice)
    first.mineMany(31)
    yield* seconds(100)
    yield* upTo(41)
    expect(yield* corroborated).toEqual([0])
  }
)

openScene("a provider that reported a transfer while it served does not corroborate it later", two, function* (liar) {
  inventing(liar)
  yield* watchedPayment(alice)
  liar.mine()
  yield* second
  yield* upTo(11)
  expect(yield* corroborated).toEqual([0])
  liar.failure = "unreachable"
  yield* second
  liar.failure = undefined
  liar.mineMany(5)
  yield* seconds(60)
  yield* upTo(16)
  expect(yield* corroborated).toEqual([0])
})

openScene(
  "a transfer that a provider invented before its cooldown counts only if the healthy one has it",
  two,
  function* (first, other) {
    let lied = false
    withLogs(first, () => {
      if (lied || first.height !== 11) return []
      lied = true
      return [inventedLog(first, 11)]
    })
    yield* watchedPayment(alice)
    other.failure = "unreachable"
    yield* next(first)
    expect(yield* corroborated).toEqual([0])
    first.failure = "unreachable"
    other.failure = undefined
    for (let i = 0; i < 6; i++) {
      first.mine()
      yield* seconds(2)
    }
    yield* until(scanned, (scan) => scan?.head_number === first.height)
    yield* seconds(2)
    expect(yield* corroborated).toEqual([0])
  }
)

openScene(
  "a provider with a longer branch of its own does not decide alone on a transfer in it",
  { nodes: 2, apart: true },
  function* (liar, honest) {
    yield* watchedPayment(alice)
    liar.mineMany(20)
    liar.mine(token(usdc, alice, 100n))
    for (let i = 0; i < 300; i++) {
      liar.mineMany(2)
      honest.mine()
      yield* second
    }
    expect(yield* corroborated).toEqual([0])
  }
)

const elsewhere = coin(`0x${"8".repeat(40)}`, 1n)
/** The node has a log of this transaction that is not in it. */
const withLog = (liar: ModelChain) =>
  withLogs(liar, () => (liar.height < 11 ? [] : [inventedLog(liar, 11, { transactionHash: elsewhere.hash })]))
/** The node reports block 11 with 100 wei to alice in each transaction. */
const withCoins = (liar: ModelChain) => {
  liar.distort = ({ method, params: [number, full] }, answer) => {
    if (method !== "eth_getBlockByNumber" || full !== true || Number(number) !== 11) return answer
    const block = answer as { transactions: ReadonlyArray<object> }
    return { ...block, transactions: block.transactions.map((one) => ({ ...one, to: alice, value: "0x64" })) }
  }
}

for (const [title, lie, paid] of [
  ["a log that one invents for a real transaction is not corroborated", withLog, elsewhere],
  ["coins that one invents for a real transaction are not corroborated", withCoins, elsewhere],
  ["a wrong amount of the coins of a real transaction is not corroborated", withCoins, coin(alice, 5n)]
] as const) {
  openScene(title, two, function* (liar) {
    lie(liar)
    yield* watchedPayment(alice)
    liar.mine(paid)
    liar.mineMany(5)
    yield* seconds(10)
    yield* upTo(16)
    expect(yield* corroborated).toEqual([0])
  })
}

openScene(
  "balances are asked of another provider where the serving one refuses them",
  { nodes: 2, settings: { chain: "base" } },
  function* (first) {
    first.distort = ({ method }, answer) => (method === "eth_getBalance" ? "no such method" : answer)
    yield* watchedPayment(alice, { chain: "base" })
    yield* mineOn([first], 40)
    yield* upTo(first.height)
    const [scan] = yield* rows<{ readonly number: number | null }>("SELECT checked_number AS number FROM scans")
    expect(scan?.number).toBeGreaterThan(10)
  }
)
