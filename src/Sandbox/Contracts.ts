import {
  type Abi,
  type Address,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  parseAbi
} from "viem"
import { decimalsOf, Erc20 } from "../Domain/Currency.ts"
import contracts from "./contracts.json" with { type: "json" }

/** A test token: its contract, and the decimals of its base units. */
export interface LocalToken {
  readonly address: Address
  readonly decimals: number
}

/** The tenth of Anvil's published accounts: unlocked, funded, and not derived by the daemon. The other nine pay. */
export const deployer: Address = "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720"

// An address follows from the deployer and the index in this list, which is its nonce: never reorder, only append.
const order = ["ProxiedToken", "USDC", "USDT", "DAI", "WBTC", "Batcher", "Reverter"] as const
const addressOf = (name: (typeof order)[number]) =>
  getContractAddress({ from: deployer, nonce: BigInt(order.indexOf(name)) })

const token = (symbol: Erc20): LocalToken => ({ address: addressOf(symbol), decimals: decimalsOf[symbol] })

/** The test tokens, at the same addresses on every chain and at every start. */
export const localTokens: Readonly<Record<Erc20, LocalToken>> = {
  USDC: token("USDC"),
  USDT: token("USDT"),
  DAI: token("DAI"),
  WBTC: token("WBTC")
}

/** On every local chain: payments in batches, payments that calldata does not show, fake transfers. See `batcherAbi`. */
export const batcherAddress = addressOf("Batcher")
export const batcherAbi = parseAbi([
  "function sendEther(address[] to, uint256[] amounts) payable",
  "function sendTokens(address[] tokens, address[] to, uint256[] amounts)",
  "function fund(address[] tokens, address[] holders, uint256 amount)",
  "function fakeTransfer(address from, address to, uint256 amount)",
  "function keep(uint256 id, address payee) payable",
  "function release(uint256 id, uint256 amount)"
])

/** On every local chain: payments that fail. Any call to it reverts but `swallow`, which succeeds and pays no one. */
export const reverterAddress = addressOf("Reverter")
export const reverterAbi = parseAbi(["function swallow(address to) payable"])

/** Multicall3 where every public chain has it, https://github.com/mds1/multicall */
export const multicall3Contract = {
  address: "0xcA11bde05977b3631167028862bE2a173976CA11" as Address,
  runtime: contracts.Multicall3.runtime as Hex
}

const creation = (name: Exclude<keyof typeof contracts, "Multicall3">, args: ReadonlyArray<unknown> = []) =>
  encodeDeployData({ abi: contracts[name].abi as Abi, bytecode: contracts[name].bytecode as Hex, args })

const describeUsdc = () =>
  encodeFunctionData({
    abi: parseAbi(["function initialize(string name, string symbol, uint8 decimals)"]),
    args: ["USD Coin", "USDC", decimalsOf.USDC]
  })

const creations: { readonly [Name in (typeof order)[number]]: () => Hex } = {
  ProxiedToken: () => creation("ProxiedToken"),
  USDC: () => creation("Proxy", [addressOf("ProxiedToken"), describeUsdc()]),
  USDT: () => creation("SilentToken", ["Tether USD", "USDT", decimalsOf.USDT]),
  DAI: () => creation("PlainToken", ["Dai Stablecoin", "DAI", decimalsOf.DAI]),
  WBTC: () => creation("PlainToken", ["Wrapped BTC", "WBTC", decimalsOf.WBTC]),
  Batcher: () => creation("Batcher"),
  Reverter: () => creation("Reverter")
}

/**
 * The deployer's transactions on a new chain, in the order of its nonces from 0: the contracts, then the minting of
 * each wanted token to `holders`. A token that is not wanted still uses up its nonce, on a transfer of nothing.
 */
export const setup = (wanted: ReadonlyArray<Erc20>, holders: ReadonlyArray<Address>) => {
  const unwanted: ReadonlyArray<string> = Erc20.literals.filter((symbol) => !wanted.includes(symbol))
  const deployments = order.map((name) => (unwanted.includes(name) ? { to: deployer } : { data: creations[name]() }))
  const tokens = [...new Set(wanted)].map((symbol) => localTokens[symbol].address)
  const data = encodeFunctionData({ abi: batcherAbi, functionName: "fund", args: [tokens, holders, 2n ** 128n] })
  return [...deployments, { to: batcherAddress, data }]
}
