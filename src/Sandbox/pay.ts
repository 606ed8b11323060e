import { Effect, Schedule } from "effect"
import { type Address, encodeFunctionData, erc20Abi, type Hash, numberToHex } from "viem"
import { decimalsOn, formatAmount, type NetworkTokens } from "../Domain/amountDecimals.ts"
import type { ChainName } from "../Domain/Chain.ts"
import type { PaymentObject } from "../Domain/Payment.ts"
import { type PlanOptions, planOf } from "./paymentPlan.ts"
import { ampleFees, makeRpc } from "./Rpc.ts"

/** Anvil's second account: it holds coins and every test token, and is unlocked for every client. */
const payer = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

/** A local chain, whose accounts are unlocked. */
export interface PayingChain {
  readonly name: ChainName
  readonly rpcUrl: string
  /** The contracts of its tokens, by symbol. */
  readonly tokens: ReadonlyMap<string, string>
}

/** How Anvil refuses a transaction whose nonce another one has got at the same moment. */
const nonceTaken = /nonce too low|already imported|replacement transaction underpriced/i

const nonceRetry = Schedule.intersect(Schedule.recurs(20), Schedule.jittered(Schedule.spaced("100 millis")))

/** Sends `amount` base units: of a token of the chain, or of its coin when `currency` is none of these. */
export const pay = Effect.fn("Sandbox.pay")(function* (
  { name, rpcUrl, tokens }: PayingChain,
  { amount, currency, to }: { readonly currency: string; readonly amount: bigint; readonly to: Address }
) {
  const rpc = yield* makeRpc(name, rpcUrl)
  const token = tokens.get(currency)
  const call =
    token === undefined
      ? { to, value: numberToHex(amount) }
      : { to: token, data: encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [to, amount] }) }
  // Equal fees: a transaction never replaces another one of the same nonce.
  const send = rpc<Hash>("eth_sendTransaction", [{ from: payer, ...ampleFees, ...call }])
  return yield* Effect.retry(send, {
    schedule: nonceRetry,
    while: ({ detail, reason }) => reason === "Refused" && nonceTaken.test(detail)
  })
})

/** The transfer for a payment. */
export interface Sending {
  readonly payment: PaymentObject
  readonly part: PlanOptions["part"]
  readonly late?: PlanOptions["late"]
  /** The chain to pay on, which may be another one than the payment's. */
  readonly chain: PayingChain
  readonly currency: string
  /** Blocks until a receipt on the payment's chain counts. */
  readonly confirmations: number
  /** The configured chains, for the decimals of their tokens. */
  readonly networks: ReadonlyArray<NetworkTokens>
}

/** Sends the planned transfer of a payment. Fails with `NotPayable`, or `LocalRpcError`. */
export const payFor = Effect.fn("Sandbox.payFor")(function* (sending: Sending) {
  const { chain, confirmations, currency, late, networks, part, payment } = sending
  const decimals = (on: string, of: string) => decimalsOn(networks, { chain: on, mode: "test" }, of) ?? 0
  const asked = decimals(payment.chain, payment.currency)
  const sent = decimals(chain.name, currency)
  const { amount, expected } = yield* planOf({
    ...{ payment, part, late, currency, confirmations },
    chain: chain.name,
    decimals: { sent, asked },
    show: (units) => formatAmount(String(units), payment.currency, asked)
  })
  const txHash = yield* pay(chain, { currency, amount, to: payment.address as Address })
  return { amount, expected, txHash, sent: formatAmount(String(amount), currency, sent) }
})

/**
 * Replaces a local chain's last `depth` blocks by empty ones, without their transactions. Fails with `LocalRpcError`.
 */
export const reorg = Effect.fn("Sandbox.reorg")(function* ({ name, rpcUrl }: PayingChain, depth: number) {
  const rpc = yield* makeRpc(name, rpcUrl)
  yield* rpc("anvil_reorg", [depth, []])
})
