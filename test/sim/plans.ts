import { Duration, Redacted } from "effect"
import type { ChainName } from "../../src/Domain/Chain.ts"
import type { Erc20, PaymentCurrency } from "../../src/Domain/Currency.ts"
import type { ChainSettings } from "../../src/Settings.ts"
import type { Dice } from "./Dice.ts"
import { addressOf } from "./transactions.ts"

/** A chain as the simulation has it: its shape is that of the real one, its times are shorter. */
export interface ChainPlan {
  readonly chain: ChainName
  readonly chainId: number
  readonly coin: "ETH" | "MATIC"
  readonly tokens: ReadonlyArray<Erc20>
  /** What a payment can ask for here. */
  readonly currencies: ReadonlyArray<PaymentCurrency>
  /** By the contract: tokens under the name of an accepted token, or under none. */
  readonly wrongTokens: ReadonlyArray<string>
  readonly confirmations: number
  /** Milliseconds. */
  readonly interval: number
  readonly layer2: boolean
}

const plan = (
  chain: ChainName,
  chainId: number,
  tokens: ReadonlyArray<Erc20>,
  wrongTokens: ReadonlyArray<string>,
  confirmations: number,
  interval: number
): ChainPlan => ({
  chain,
  chainId,
  coin: chain === "polygon" ? "MATIC" : "ETH",
  tokens,
  currencies: chain === "polygon" ? tokens : ["ETH", ...tokens],
  wrongTokens,
  confirmations,
  interval,
  layer2: chain === "optimism" || chain === "base"
})

export const plans: ReadonlyArray<ChainPlan> = [
  plan("ethereum", 1, ["USDC", "USDT", "DAI", "WBTC"], [], 3, 6_000),
  plan("polygon", 137, ["USDC", "USDT"], ["USDC.e"], 4, 3_000),
  plan("arbitrum", 42_161, ["USDC", "DAI"], ["USDC.e"], 6, 1_500),
  plan("optimism", 10, ["USDC", "DAI"], ["USDC.e", "USDT"], 4, 3_000),
  plan("base", 8_453, ["USDC"], ["USDbC", "DAI"], 4, 3_000)
]

/** The chains of a seed: all five, or some of them, which takes less time. */
export const plansOf = (dice: Dice): ReadonlyArray<ChainPlan> => {
  const count = dice.pick([2, 2, 2, 3, 5])
  const left = [...plans]
  return Array.from({ length: count }, () => left.splice(dice.below(left.length), 1)).flat()
}

const contracts = new Map<string, string>()

/** Lower case. */
export const contractOf = ({ chain }: ChainPlan, symbol: string): string => {
  const name = `${symbol} on ${chain}`
  const contract = contracts.get(name) ?? addressOf(name)
  contracts.set(name, contract)
  return contract
}

export const urlOf = ({ chain }: ChainPlan, provider: number): string => `https://${chain}-${provider}.example`

export const settleGrace = 20_000

/** `providers`: how many it has; `requires`: the tag that every payment waits for. */
export const settingsOf = (one: ChainPlan, providers: number, requires?: "safe" | "finalized"): ChainSettings => ({
  chain: one.chain,
  mode: "test",
  rpcUrls: Array.from({ length: providers }, (_, i) => Redacted.make(urlOf(one, i))),
  chainId: one.chainId,
  confirmations: one.confirmations,
  pollInterval: Duration.seconds(5),
  balanceInterval: Duration.seconds(9),
  startBlock: "latest",
  accepting: true,
  tokens: one.tokens.map((symbol) => ({ symbol, address: contractOf(one, symbol), decimals: 6 })),
  wrongTokens: one.wrongTokens.map((name) => ({ name, address: contractOf(one, name) })),
  policies: requires === undefined ? [] : [{ aboveUsd: "0", require: requires }],
  knownBlocks: []
})
