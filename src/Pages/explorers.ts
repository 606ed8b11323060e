// The block explorers of public networks by chain id (EIP-155), each run by Etherscan. A local chain has none.
const explorers: ReadonlyMap<number, string> = new Map([
  [1, "https://etherscan.io"],
  [11155111, "https://sepolia.etherscan.io"],
  [137, "https://polygonscan.com"],
  [80002, "https://amoy.polygonscan.com"],
  [42161, "https://arbiscan.io"],
  [421614, "https://sepolia.arbiscan.io"],
  [10, "https://optimistic.etherscan.io"],
  [11155420, "https://sepolia-optimism.etherscan.io"],
  [8453, "https://basescan.org"],
  [84532, "https://sepolia.basescan.org"]
])

/** The chain's explorer; undefined where there is none. */
export const explorerOf = (chainId: number): string | undefined => explorers.get(chainId)

/** Where the chain's explorer shows a transaction or an address; undefined where there is no explorer. */
export const explorerUrl = (chainId: number | undefined, kind: "tx" | "address", value: string): string | undefined => {
  const explorer = chainId === undefined ? undefined : explorers.get(chainId)
  return explorer && `${explorer}/${kind}/${value}`
}
