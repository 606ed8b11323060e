import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { bloomOf } from "../../sim/bloom.ts"
import { alice, aroundSomeReal, second, upTo, usdc, watchedPayment, withReceipts, withTokens } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { ledger, paymentById } from "../world.ts"

// Issue 14 row 4: what the serving provider leaves out.

it.scoped("a log that a block's bloom promises, and one provider withholds, is found within one tick", () => {
  const liar = new ModelChain(10)
  const honest = liar.twin()
  const bloom = bloomOf([usdc, transferTopic, `0x${alice.slice(2).toLowerCase().padStart(64, "0")}`])
  liar.distort = ({ method, params: [number] }, answer) => {
    if (method === "eth_getLogs") return []
    const isPaid = Number(number) === 11 || (number === "latest" && liar.height === 11)
    if (method !== "eth_getBlockByNumber" || answer === null || !isPaid) return answer
    return { ...(answer as object), logsBloom: bloom }
  }
  return Effect.gen(function* () {
    const { id } = yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
    liar.mine(token(usdc, alice, 5n))
    yield* second
    yield* upTo(11)
    expect((yield* paymentById(id))?.status).toBe("detecting")
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
  }).pipe(aroundSomeReal([liar, honest]))
})

it.scoped("coins without a transaction that the ledger has above the searched blocks are not counted twice", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  for (const node of [first, other]) withReceipts(node)
  return Effect.gen(function* () {
    yield* Effect.forkScoped((yield* Settlement).expire)
    const { id } = yield* watchedPayment(alice, { chain: "base", amount: 5n })
    first.mine(coin(alice, 3n))
    first.mineMany(380 - first.height)
    const writer = yield* Writer
    // As with a node without old states: stored at the head, where its balance was read.
    yield* writer.write(
      Effect.flatMap(Tx, (tx) =>
        tx.run(
          `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, currency, amount,
             payment_id, canonical, corroborated, seen_at)
           VALUES ('base', 'test', ?, ?, 'unattributed', 380, 3800, 'ETH', '3', ?, 1, 1, 0)`,
          [first.blocks[380]?.hash ?? "", alice.toLowerCase(), id]
        )
      )
    )
    for (let i = 0; i < 30; i++) yield* second
    yield* upTo(380)
    const sum = (yield* ledger).reduce((all, row) => all + (row.canonical === 1 ? BigInt(row.amount) : 0n), 0n)
    expect(sum).toBe(3n)
  }).pipe(aroundSomeReal([first, other], { ...withTokens, chain: "base" }))
})
