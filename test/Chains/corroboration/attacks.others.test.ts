import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { Chains } from "../../../src/Chains.ts"
import { rows } from "../../lib/rows.ts"
import { receiptIn, transactionIn } from "../../sim/shapes.ts"
import { address, alice, health, usdc, watchedPayment } from "../around.ts"
import { stateOf, untilOver } from "../lying.ts"
import { coin, type ModelChain, token } from "../ModelChain.ts"
import { committedTo, pass, pay, watch } from "../world.ts"
import { mineOn, scene, seconds, servingCoins, watchedCoins } from "./scene.ts"

// The effect of one of three on the others, and on the requests to them.

scene(
  "one of three that is slow in each call, with blocks that take hundreds of them, stops nothing",
  { nodes: 3, place: 1, hosts: true, settings: { chain: "base" } },
  function* (liar) {
    const invented = (n: number) => `0xddd${n.toString(16).padStart(61, "0")}`
    let lies = false
    let target = ""
    liar.intercept = (batch) => {
      for (const { method, params } of batch) if (method === "eth_getBlockByHash") target = String(params[0])
    }
    liar.delay = () => (lies ? Effect.sleep("4900 millis") : Effect.void)
    liar.distort = ({ method, params: [of] }, answer) => {
      if (!lies) return answer
      if (method === "eth_getLogs") return Array.from({ length: 1_000 }, () => ({}))
      if (method === "eth_getBlockReceipts") return "0x"
      if (method === "eth_getBlockByHash" && answer !== null) {
        return { ...(answer as object), transactions: Array.from({ length: 30_000 }, (_, i) => invented(i)) }
      }
      if (method !== "eth_getTransactionReceipt" || !String(of).startsWith("0xddd")) return answer
      const logsBloom = `0x${"0".repeat(512)}`
      return { transactionHash: of, blockHash: target, blockNumber: "0x1", status: "0x1", logs: [], logsBloom }
    }
    yield* Effect.forkScoped((yield* Settlement).expire)
    const inUsdc = { chain: "base", currency: "USDC", amount: 5n } as const
    const paid = yield* pay(alice, { ...inUsdc, expiresIn: 7_200_000 })
    const unpaid = yield* pay(address(0xb0b), { ...inUsdc, expiresIn: 900_000 })
    yield* watch
    yield* committedTo(10)
    lies = true
    for (let i = 0; i < 240; i++) {
      liar.mine(...(i === 18 ? [token(usdc, alice, 5n)] : []))
      yield* seconds(10)
    }
    expect([yield* stateOf(paid.id), yield* stateOf(unpaid.id)]).toEqual(["confirmed 5", "expired"])
  }
)

scene(
  "one of three contradicts no provider while the third one limits calls",
  { nodes: 3, place: 1, hosts: true },
  function* (liar, _, third) {
    let lies = true
    liar.distort = ({ method }, answer) => {
      if (method === "eth_gasPrice") return "0x1"
      if (lies && method === "eth_getTransactionReceipt") return null
      return lies && answer !== null && method === "eth_getBlockByNumber" ? { ...answer, transactions: [] } : answer
    }
    yield* watchedPayment(alice, { currency: "USDC", amount: 4n })
    const gas = Effect.flatMap(Chains, (chains) => chains.gas({ chain: "ethereum", mode: "test" }))
    third.failure = "rate_limited"
    liar.mine(token(usdc, alice, 1n))
    yield* mineOn([liar], 5)
    for (let i = 0; i < 3; i++) liar.mine(token(usdc, alice, 1n))
    yield* mineOn([liar], 5)
    yield* seconds(5)
    third.failure = undefined
    lies = false
    yield* mineOn([liar], 20)
    yield* seconds(20)
    expect((yield* health)?.providers.map(({ healthy }) => healthy)).toEqual([true, true, true])
    expect((yield* gas)?.price).toBe(1_000_000_000n)
  }
)

scene(
  "a provider that shows refuted coins again is contradicted again, and keeps no payment open",
  { nodes: 3, place: 0, hosts: true },
  function* (liar, ...others) {
    servingCoins(liar, ...others)
    const invented = coin(alice, 5n)
    const { distort } = liar
    liar.distort = (request, answer) => {
      const { method, params } = request
      const [of, full] = params
      const block = liar.blocks[11]
      if (block === undefined) return distort(request, answer)
      if (of === invented.hash && method === "eth_getTransactionReceipt") return receiptIn(block, invented, 0, [])
      if (of === invented.hash && method === "eth_getTransactionByHash") return transactionIn(block, invented, 0)
      if (method === "eth_getBalance" && String(of).toLowerCase() === alice.toLowerCase()) {
        return liar.numberOf(params[1]) >= 11 ? "0x5" : "0x0"
      }
      const whole = answer as { readonly number: string } | null
      if (whole === null || !/^eth_getBlockBy(Number|Hash)$/.test(method) || Number(whole.number) !== 11) {
        return distort(request, answer)
      }
      return { ...whole, transactions: [full === true ? transactionIn(block, invented, 0) : invented.hash] }
    }
    yield* watchedCoins(50n, { expiresIn: 86_400_000 })
    const victim = yield* pay(address(0xb0b), { amount: 7n, expiresIn: 5_400_000 })
    yield* mineOn([liar], 20)
    for (let i = 0; i < 64; i++) {
      liar.mine()
      yield* pass("1 minute")
    }
    const [first] = others
    first.failure = "rate_limited"
    yield* mineOn([liar], 2)
    yield* seconds(2)
    first.failure = undefined
    liar.mineMany(450)
    for (let i = 0; i < 20; i++) {
      yield* mineOn([liar], 3)
      yield* pass("30 seconds")
    }
    expect(yield* stateOf(victim.id)).toBe("expired")
  }
)

/** The nodes say that alice holds that much after a block. */
const holding = (held: (block: number) => number, ...nodes: ReadonlyArray<ModelChain>) => {
  servingCoins(...nodes)
  for (const node of nodes) {
    const { distort } = node
    node.distort = (request, answer) => {
      const { method, params } = request
      const isOfAlice =
        /Balance|TransactionCount/.test(method) && String(params[0]).toLowerCase() === alice.toLowerCase()
      if (answer === null || !isOfAlice) return distort(request, answer)
      const number = node.numberOf(params[1])
      return number < 0 ? null : `0x${(method === "eth_getBalance" ? held(number) : 0).toString(16)}`
    }
  }
}

scene(
  "late coins that the serving one of three hides are found by others that have each block a second later",
  { nodes: 3, place: 0, hosts: true },
  function* (liar, ...others) {
    holding(() => 0, liar)
    holding((block) => (block >= 400 ? 3 : 0), ...others)
    const { id } = yield* watchedCoins()
    yield* untilOver(liar)
    yield* seconds(60)
    expect(yield* stateOf(id)).toBe("expired")
    liar.mineMany(40)
    yield* seconds(10)
    // The first request for balances in a new block comes too early at each of them.
    for (const node of others) {
      let asked = 0
      node.intercept = (batch) => {
        if (!batch.some(({ method }) => method === "eth_getBalance")) return
        node.behind = asked === liar.height ? 0 : 1
        asked = liar.height
      }
    }
    for (let i = 0; i < 60; i++) {
      liar.mine()
      yield* pass("1 minute")
    }
    expect(yield* rows("SELECT kind, amount FROM exceptions")).toEqual([{ kind: "late", amount: "3" }])
  }
)
