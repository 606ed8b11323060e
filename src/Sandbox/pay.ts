import { Data, Effect, Either, Schedule } from "effect"
import { type Address, encodeFunctionData, erc20Abi, type Hash, numberToHex } from "viem"
import { type ChainName, chainTraits } from "../Domain/Chain.ts"
import { decimalsOn, formatAmount, type NetworkTokens, nativeToken } from "../Domain/Currency.ts"
import { isEnded, type PaymentObject } from "../Domain/Payment.ts"
import { ampleFees, makeRpc } from "./Rpc.ts"

/** Nothing can be sent for the payment. `message` says why. */
class NotPayable extends Data.TaggedError("NotPayable")<{ readonly message: string }> {}

export interface PlanOptions {
  readonly payment: PaymentObject
  /** `half` of what is missing, or `more` than that; otherwise all of it. */
  readonly part: "half" | "more" | undefined
  /** Also pay a payment that has ended. */
  readonly late?: boolean | undefined
  readonly chain: ChainName
  readonly currency: string
  /** Blocks until a receipt on the payment's chain counts. */
  readonly confirmations: number
  /** Decimals of the currency on its chain, and of the payment's on its own. */
  readonly decimals: { readonly sent: number; readonly asked: number }
  /** Words an amount in the payment's currency. */
  readonly show: (amount: bigint) => string
}

interface Plan {
  readonly amount: bigint
  /** Its effect, in sentences. */
  readonly expected: string
}

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** The same number of units of another currency, and at least the smallest amount. */
const inOther = (amount: bigint, { asked, sent }: PlanOptions["decimals"]): bigint =>
  larger(1n, (amount * 10n ** BigInt(sent)) / 10n ** BigInt(asked))

const isFitting = ({ chain, currency, payment }: PlanOptions): boolean =>
  chain === payment.chain && currency === payment.currency

/** The effect of `amount`, while the payment lacks `missing`. */
const expectedOf = (amount: bigint, missing: bigint, options: PlanOptions): string => {
  const { chain, confirmations, currency, payment, show } = options
  if (!isFitting(options)) {
    const kind = chain === payment.chain ? "wrong_token" : "wrong_chain"
    const reason = payment.amountReceived === undefined ? kind : "insufficient_amount"
    // A chain without open payments is read every two minutes. Coins that no payment on the chain asks for are seen where
    // blocks are read with their transactions, elsewhere in the balance at the deadline.
    const isFoundLate = currency === nativeToken(chain) && !chainTraits[chain].readsFullBlocks
    const soon = chain === payment.chain ? "" : " within two minutes"
    const when = isFoundLate ? `, found when the payment's time is over, ${payment.expiresAt}` : soon
    const rest = `${show(missing)} are missing as before: without them by ${payment.expiresAt} it fails with ${reason}`
    return `an exception ${kind}${when}${missing === 0n ? "" : `. ${rest}`}`
  }
  const detecting = payment.status === "pending" ? ["payment.detecting"] : []
  if (amount >= missing) {
    const surplus = amount === missing ? [] : [`an exception overpaid of ${show(amount - missing)}`]
    const paid = payment.invoice === undefined ? "payment.confirmed" : "payment.confirmed and invoice.paid"
    return [...detecting, `${paid} after ${confirmations} blocks`, ...surplus].join(", then ")
  }
  const rest = `${show(missing - amount)} are still missing: without them by ${payment.expiresAt} it fails with insufficient_amount`
  return [...detecting, rest].join(". ")
}

/** The effect of money for a payment that has ended. */
const expectedLate = (options: PlanOptions): string => {
  const { expiresAt, failureReason, status } = options.payment
  if (!isFitting(options))
    return `an exception ${options.chain === options.payment.chain ? "wrong_token" : "wrong_chain"}`
  const inTime = status === "confirmed" ? "overpaid" : failureReason === "cancelled" ? "found_late" : undefined
  return inTime === undefined ? "an exception late" : `an exception ${inTime}, and late after ${expiresAt}`
}

const refused = (message: string) => Either.left(new NotPayable({ message }))

/** The transfer. Left for a payment that has ended, or that lacks nothing. */
export const planOf = (options: PlanOptions): Either.Either<Plan, NotPayable> => {
  const { amount: asked, amountReceived = "0", id, status } = options.payment
  const isOver = isEnded(status)
  if (isOver && !options.late)
    return refused(`${id} is ${status} and expects no more money: make another payment (or --late)`)
  if (!isOver && options.late) return refused(`${id} is ${status}: --late is for a payment that has ended`)
  const missing = isOver ? BigInt(asked) : larger(0n, BigInt(asked) - BigInt(amountReceived))
  const fits = isFitting(options)
  if (fits && missing === 0n && options.part !== "more") {
    return refused(`${id} has got what it asks for and waits for confirmations: --part more sends too much`)
  }
  const whole = fits || missing > 0n ? missing : BigInt(asked)
  const parts = { half: whole / 2n, more: whole + larger(1n, BigInt(asked) / 10n) }
  const units = options.part === undefined ? whole : parts[options.part]
  if (units === 0n) return refused(`${id} lacks the smallest amount that there is, which has no half`)
  const amount = fits ? units : inOther(units, options.decimals)
  return Either.right({ amount, expected: isOver ? expectedLate(options) : expectedOf(amount, missing, options) })
}

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
