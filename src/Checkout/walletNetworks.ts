/**
 * What a wallet needs to add a public network that it does not know (EIP-3085), by chain id. The RPC URLs are the public
 * ones of each network's own documentation; every wallet knows Ethereum.
 */
import { explorerOf } from "../Pages/explorers.ts"

const ether = { name: "Ether", symbol: "ETH", decimals: 18 } as const
const pol = { name: "POL", symbol: "POL", decimals: 18 } as const

const networks = new Map<number, readonly [name: string, coin: typeof ether | typeof pol, rpcUrl: string]>([
  [137, ["Polygon", pol, "https://polygon-rpc.com"]],
  [80002, ["Polygon Amoy", pol, "https://rpc-amoy.polygon.technology"]],
  [42161, ["Arbitrum One", ether, "https://arb1.arbitrum.io/rpc"]],
  [421614, ["Arbitrum Sepolia", ether, "https://sepolia-rollup.arbitrum.io/rpc"]],
  [10, ["OP Mainnet", ether, "https://mainnet.optimism.io"]],
  [11155420, ["OP Sepolia", ether, "https://sepolia.optimism.io"]],
  [8453, ["Base", ether, "https://mainnet.base.org"]],
  [84532, ["Base Sepolia", ether, "https://sepolia.base.org"]]
])

/** The parameter of `wallet_addEthereumChain`; undefined for a chain that has no public network. */
export const addingOf = (chainId: number) => {
  const [chainName, nativeCurrency, rpcUrl] = networks.get(chainId) ?? []
  if (chainName === undefined) return undefined
  const explorer = explorerOf(chainId)
  return {
    chainId: `0x${chainId.toString(16)}`,
    ...{ chainName, nativeCurrency },
    rpcUrls: [rpcUrl],
    ...(explorer === undefined ? {} : { blockExplorerUrls: [explorer] })
  }
}
