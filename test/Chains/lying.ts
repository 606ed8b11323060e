import { Effect } from "effect"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import { receiptIn, shownLog } from "../sim/shapes.ts"
import { transferLog } from "../sim/transactions.ts"
import { alice, second, upTo, usdc, watchedPayment } from "./around.ts"
import { type ModelChain, token } from "./ModelChain.ts"
import { paymentById } from "./world.ts"

/** Status, reason and amount of a payment, as far as it has them. */
export const stateOf = (id: PaymentId) =>
  Effect.map(paymentById(id), (payment) =>
    [payment?.status, payment?.failureReason, payment?.amountReceived].filter((part) => part !== undefined).join(" ")
  )

/** A payment that is watched, in a world in which payments end. */
export const watchedUsdc = (amount = 5n) =>
  Effect.gen(function* () {
    const { expire } = yield* Settlement
    yield* Effect.forkScoped(expire)
    return yield* watchedPayment(alice, { currency: "USDC", amount })
  })

/**
 * A node that invents a transfer to alice in a block, and reports it in every response. Returns its transaction, which may
 * be mined for real.
 */
export const inventing = (chain: ModelChain, number = 11, amount = 5n) => {
  const invention = token(usdc, alice, amount)
  chain.distort = ({ method, params: [of] }, answer) => {
    const block = chain.blocks[number]
    if (block === undefined) return answer
    const log = shownLog(transferLog(usdc, alice.toLowerCase(), amount), block, { hash: invention.hash, index: 7 }, 7)
    if (method === "eth_getTransactionReceipt" && of === invention.hash) return receiptIn(block, invention, 7, [log])
    if (method !== "eth_getLogs") return answer
    const { fromBlock, toBlock } = of as { fromBlock: string; toBlock: string }
    const here = Number(fromBlock) <= number && Number(toBlock) >= number
    return here ? [...(answer as ReadonlyArray<unknown>), log] : answer
  }
  return invention
}

/** Blocks until a payment that was made at block 10 is over, and deeper than the confirmations. */
export const untilOver = (chain: ModelChain) =>
  Effect.gen(function* () {
    for (let i = 0; i < 60; i++) {
      chain.mineMany(Math.min(10, 380 - chain.height))
      yield* second
    }
    yield* upTo(380)
  })
