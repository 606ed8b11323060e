import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { rows } from "../../lib/rows.ts"
import { receiptIn, transactionIn } from "../../sim/shapes.ts"
import { alice, watchedPayment } from "../around.ts"
import { stateOf } from "../lying.ts"
import { coin, type ModelChain } from "../ModelChain.ts"
import { pass } from "../world.ts"
import { inventedLog, mineOn, scene, seconds, servingCoins, watchedCoins, withLogs } from "./scene.ts"

// Thousands of receipts of one payment, real or invented, are dust, which is settled as sums: they are asked about too.

const listed = rows<{ kind: string; amount: string }>("SELECT kind, amount FROM exceptions")

/** The node shows so many more transactions to alice in a block, while it lies. */
const inventing = (liar: ModelChain, number: number, count: number, isLying: () => boolean) => {
  const invented = Array.from({ length: count }, (_, i) => coin(alice, 600_000n + BigInt(i)))
  const byHash = new Map(invented.map((one, i) => [one.hash as unknown, { one, i: i + 5 }]))
  const { distort } = liar
  liar.distort = (request, answer) => {
    const { method, params } = request
    const [of, full] = params
    const block = liar.blocks[number]
    const known = byHash.get(of)
    if (!isLying() || block === undefined) return distort(request, answer)
    if (known && method === "eth_getTransactionReceipt") return receiptIn(block, known.one, known.i, [])
    if (known && method === "eth_getTransactionByHash") return transactionIn(block, known.one, known.i)
    const whole = answer as { readonly number: string; readonly transactions: ReadonlyArray<unknown> } | null
    if (whole === null || full !== true || !/^eth_getBlockBy/.test(method) || Number(whole.number) !== number) {
      return distort(request, answer)
    }
    const more = invented.map((one, i) => transactionIn(block, one, i + 5))
    return { ...whole, transactions: [...whole.transactions, ...more] }
  }
}

for (const { nodes, place } of [
  { nodes: 3, place: 0 },
  { nodes: 2, place: 0 }
]) {
  scene(
    `6,100 invented transfers hold no payment open, by ${place} of ${nodes}`,
    { nodes, place, hosts: true },
    function* (liar) {
      let lies = true
      const logs = (n: number) => {
        const over = { logIndex: `0x${(n + 7).toString(16)}`, transactionHash: `0x${n.toString(16).padStart(64, "f")}` }
        return inventedLog(liar, 11, { amount: 600_000n + BigInt(n), ...over })
      }
      withLogs(liar, () => (lies ? Array.from({ length: 6_100 }, (_, n) => logs(n)) : []))
      yield* Effect.forkScoped((yield* Settlement).expire)
      const { id } = yield* watchedPayment(alice, { currency: "USDC", amount: 50_000_000n, expiresIn: 1_800_000 })
      liar.mine()
      yield* mineOn([liar], 16)
      yield* seconds(50)
      lies = false
      for (let i = 0; i < 5; i++) {
        yield* mineOn([liar], 60)
        yield* seconds(60)
      }
      expect(yield* stateOf(id)).toBe("expired")
    }
  )
}

scene(
  "coins in full count beyond thousands that one of three invents",
  { nodes: 3, place: 0, hosts: true },
  function* (liar, ...others) {
    servingCoins(liar, ...others)
    let lies = true
    inventing(liar, 11, 2_500, () => lies)
    const { id } = yield* watchedCoins(50_000_000n, { expiresIn: 1_800_000 })
    liar.mine()
    yield* seconds(1)
    lies = false
    liar.mine(coin(alice, 50_000_000n))
    yield* mineOn([liar], 60)
    expect(yield* stateOf(id)).toBe("confirmed 50000000")
  }
)

scene(
  "late coins are in an exception beyond a thousand that one of three invents",
  { nodes: 3, place: 0, hosts: true },
  function* (liar, ...others) {
    servingCoins(liar, ...others)
    let lies = false
    inventing(liar, 131, 1_100, () => lies)
    yield* watchedCoins(50_000_000n, { expiresIn: 900_000 })
    yield* mineOn([liar], 120)
    yield* seconds(60)
    lies = true
    liar.mine()
    yield* pass("5 minutes")
    lies = false
    liar.mine(coin(alice, 50_000_000n))
    yield* mineOn([liar], 30)
    for (let i = 0; i < 40; i++) {
      liar.mine()
      yield* pass("10 minutes")
    }
    expect(yield* listed).toEqual([{ kind: "late", amount: "50000000" }])
  }
)

for (const [count, end, exceptions] of [
  [2_500, "confirmed 51000000", [{ kind: "overpaid", amount: "25000000" }]],
  [1_500, "failed insufficient_amount 45000000", [{ kind: "underpaid", amount: "45000000" }]]
] as const) {
  scene(
    `a payment that gets ${count} transactions of coins, of three providers: ${end}`,
    { nodes: 3, hosts: true },
    function* (...all) {
      servingCoins(...all)
      const [chain] = all
      const { id } = yield* watchedCoins(50_000_000n, { expiresIn: 1_800_000 })
      for (let block = 0; block < 10; block++) {
        chain.mine(...Array.from({ length: count / 10 }, () => coin(alice, 30_000n)))
        yield* seconds(1)
      }
      for (let i = 0; i < 6; i++) {
        yield* mineOn([chain], 50)
        yield* seconds(70)
      }
      expect(yield* stateOf(id)).toBe(end)
      expect((yield* listed).map(({ kind }) => kind)).toEqual(exceptions.map(({ kind }) => kind))
    }
  )
}

scene(
  "small late coins are one exception, of three providers as of one",
  { nodes: 3, hosts: true },
  function* (...all) {
    servingCoins(...all)
    const [chain] = all
    yield* watchedCoins(50_000_000n, { expiresIn: 900_000 })
    yield* mineOn([chain], 130)
    yield* seconds(90)
    for (let i = 0; i < 40; i++) {
      chain.mine(coin(alice, 30_000n))
      yield* seconds(1)
    }
    yield* mineOn([chain], 30)
    for (let i = 0; i < 12; i++) {
      chain.mine()
      yield* pass("10 minutes")
    }
    expect(yield* listed).toEqual([{ kind: "late", amount: "1200000" }])
  }
)
