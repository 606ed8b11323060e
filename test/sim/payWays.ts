import { type ChainPlan, contractOf, plans } from "./plans.ts"
import type { PaymentRow } from "./rows.ts"
import type { Part, Way } from "./steps.ts"
import { addressOf, nonFungibleLog, paymaster, type Transaction, transaction, transferLog } from "./transactions.ts"

export const amountOf = (part: Part, needed: bigint, paid: bigint): bigint => {
  switch (part) {
    case "all":
      return needed
    case "half":
      return (needed + 1n) / 2n
    case "rest":
      return needed > paid ? needed - paid : 1n
    // What is missing then is below the floor.
    case "almost":
      return needed - needed / 200n
    case "more":
      return needed + 7n
    case "dust":
      return 1n
  }
}

export const planOf = (chain: string): ChainPlan => {
  const found = plans.find((plan) => plan.chain === chain)
  if (found === undefined) throw new Error(`no plan of ${chain}`)
  return found
}

/** A transaction and the chain that it is for. */
export interface Sent {
  readonly chain: ChainPlan["chain"]
  readonly transaction: Transaction
}

type Transfer = (to: string, amount: bigint) => Partial<Transaction>

const coin: Transfer = (to, value) => ({ to, value })
const tokenOf =
  (contract: string): Transfer =>
  (to, value) => ({ to: contract, logs: [transferLog(contract, to, value)] })

const inside = (pays: ReadonlyArray<readonly [to: string, value: bigint]>, input: string): Partial<Transaction> => ({
  to: paymaster,
  input,
  value: pays.reduce((sum, [, value]) => sum + value, 0n),
  inner: pays.map(([to, value]) => ({ type: "CALL", from: paymaster, to, value })),
  gasUsed: 90_000n
})

/** A call with these addresses among its arguments. */
const named = (...addresses: ReadonlyArray<string>): string =>
  `0x12345678${addresses.map((address) => address.slice(2).padStart(64, "0")).join("")}`

export interface Order {
  readonly way: Way
  readonly part: Part
  /** Whichever else the way needs. */
  readonly other: number
}

/** What someone sends to a payment's address. `paid`: what was sent before; `all`: every payment there is. */
export const pay = (
  name: string,
  payment: PaymentRow,
  { other, part, way }: Order,
  paid: bigint,
  all: ReadonlyArray<PaymentRow>,
  chains: ReadonlyArray<ChainPlan>
): Sent => {
  const plan = planOf(payment.chain)
  const { address, chain, currency } = payment
  const amount = amountOf(part, BigInt(payment.amount), paid)
  const isCoin = currency === plan.coin
  const contract = contractOf(plan, currency)
  const right = isCoin ? coin : tokenOf(contract)
  const neighbour = all[other % all.length]?.address ?? address
  const from = (transfer: Partial<Transaction>): Sent => ({
    chain,
    transaction: transaction(name, { ...transfer, l1Fee: plan.layer2 ? 5_000n : 0n })
  })
  const log = (to: string, value: bigint) => transferLog(contract, to, value)

  switch (way) {
    case "plain":
      return from(right(address, amount))
    case "collected":
      return from(isCoin && other % 4 > 1 ? inside([[address, amount]], named(address)) : right(address, amount))
    case "severalInOne": {
      const parts = [amount - amount / 2n, amount / 2n].filter((value) => value > 0n)
      return isCoin
        ? from(
            inside(
              parts.map((value) => [address, value] as const),
              named(address)
            )
          )
        : from({ to: contract, logs: parts.map((value) => log(address, value)) })
    }
    case "batch":
      return isCoin
        ? from(
            inside(
              [
                [neighbour, 3n],
                [address, amount]
              ],
              named(neighbour, address)
            )
          )
        : from({ to: paymaster, logs: [log(neighbour, 3n), log(address, amount)] })
    case "withOthers": {
      const fake = transferLog(addressOf(`fake ${other}`), address, amount)
      return isCoin ? from(coin(address, amount)) : from({ to: contract, logs: [fake, log(address, amount), fake] })
    }
    case "insideNamed":
      return from(isCoin ? inside([[address, amount]], named(address)) : right(address, amount))
    case "insideHidden":
      return from(isCoin ? inside([[address, amount]], "0xdeadbeef") : right(address, amount))
    case "selfDestruct":
      if (!isCoin) return from(right(address, amount))
      return from({ to: paymaster, inner: [{ type: "SELFDESTRUCT", from: paymaster, to: address, value: amount }] })
    case "stateSync":
      return from({ ...right(address, amount), isStateSync: !isCoin })
    case "wrongToken": {
      const wrong = plan.wrongTokens[other % Math.max(1, plan.wrongTokens.length)] ?? "a token that nobody knows"
      return from(tokenOf(contractOf(plan, wrong))(address, amount))
    }
    case "lookAlike":
      return from(tokenOf(addressOf(`look-alike ${other}`))(address, amount))
    case "failed":
      return from({ ...right(address, amount), fails: true })
    case "zero":
      return from(right(address, 0n))
    case "nonFungible":
      return from({ to: contract, logs: [nonFungibleLog(contract, address, amount)] })
    case "malformed": {
      const whole = log(address, amount)
      return from({ to: contract, logs: [{ ...whole, data: other % 2 === 0 ? "0x" : `${whole.data}00` }] })
    }
    case "otherChain": {
      const elsewhere = chains.filter((one) => one !== plan)[other % (chains.length - 1)] ?? plan
      const symbol = elsewhere.tokens[other % elsewhere.tokens.length] ?? "USDC"
      const transfer = other % 3 === 0 ? coin(address, amount) : tokenOf(contractOf(elsewhere, symbol))(address, amount)
      return { chain: elsewhere.chain, transaction: transaction(name, transfer) }
    }
    case "otherCurrency": {
      const symbols = plan.tokens.filter((symbol) => symbol !== currency)
      const symbol = symbols[other % (symbols.length + 1)]
      return from(symbol === undefined ? coin(address, 10n ** 19n) : tokenOf(contractOf(plan, symbol))(address, amount))
    }
  }
}

const gasPrice = 1_000_000_000n

/** The merchant collects what an address holds, or half of it; undefined while it does not hold the gas for that. */
export const spend = (
  name: string,
  { address, chain }: PaymentRow,
  balance: bigint,
  all: boolean
): Sent | undefined => {
  const l1Fee = planOf(chain).layer2 ? 5_000n : 0n
  const left = balance - 21_000n * gasPrice - l1Fee
  if (left < 0n) return undefined
  const to = addressOf("the merchant's own wallet")
  const value = all ? left : left / 2n
  return { chain, transaction: transaction(name, { from: address, to, value, gasPrice, l1Fee }) }
}

/** Many transfers of one base unit each, to a payment's address in what it asks for, or to unwatched addresses. */
export const dustOf = (
  name: string,
  plan: ChainPlan,
  payment: PaymentRow | undefined,
  transfers: number
): ReadonlyArray<Transaction> => {
  const each = Array.from({ length: transfers }, (_, i) => i)
  if (payment?.currency === plan.coin) {
    return each.map((i) => transaction(`${name} dust ${i}`, { to: payment.address, value: 1n }))
  }
  const contract = contractOf(plan, payment?.currency ?? plan.tokens[0] ?? "USDC")
  const log = (i: number) => transferLog(contract, payment?.address ?? addressOf(`a stranger ${i % 8}`), 1n)
  return [0, 1, 2].map((part) => {
    const logs = each.filter((i) => i % 3 === part).map(log)
    return transaction(`${name} dust ${part}`, { to: contract, logs })
  })
}
