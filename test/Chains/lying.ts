import { Effect } from "effect"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { transferTopic } from "../../src/Chains/rpc/methods.ts"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import { alice, second, upTo, usdc, watchedPayment } from "./around.ts"
import type { ModelChain } from "./ModelChain.ts"
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

const invention = `0x${"f".repeat(64)}`

/** A node that has made up a transfer to alice in a block, and tells of it wherever it is asked. */
export const inventing = (chain: ModelChain, block = 11, amount = 5n) => {
  const log = () => ({
    address: usdc,
    topics: [transferTopic, `0x${"0".repeat(64)}`, `0x${alice.slice(2).toLowerCase().padStart(64, "0")}`],
    data: `0x${amount.toString(16).padStart(64, "0")}`,
    blockNumber: `0x${block.toString(16)}`,
    blockHash: chain.blocks[block]?.hash,
    transactionHash: invention,
    logIndex: "0x7",
    removed: false
  })
  chain.distort = ({ method, params: [of] }, answer) => {
    if (chain.height < block) return answer
    if (method === "eth_getTransactionReceipt" && of === invention) {
      return { transactionHash: of, blockHash: log().blockHash, status: "0x1", logs: [log()] }
    }
    if (method !== "eth_getLogs") return answer
    const { fromBlock, toBlock } = of as { fromBlock: string; toBlock: string }
    const here = Number(fromBlock) <= block && Number(toBlock) >= block
    return here ? [...(answer as ReadonlyArray<unknown>), log()] : answer
  }
}

/** The node gives a false hash for each final block above 10 besides its other lies. */
export const withFalseFinalHashes = (chain: ModelChain) => {
  const { distort } = chain
  chain.distort = (request, answer) => {
    const [number] = request.params
    const isFinal = Number(number) > 10 && Number(number) <= chain.height - 12
    if (request.method !== "eth_getBlockByNumber" || !isFinal) return distort(request, answer)
    return { ...(answer as object), hash: `0x${"7".repeat(64)}` }
  }
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
