import type { ChainName, Mode } from "../Domain/Chain.ts"
import type { Erc20 } from "../Domain/Currency.ts"

/** The preset of a public network. Token addresses are those that their issuers publish. */
export interface Preset {
  readonly name: string
  readonly chainId: number
  readonly tokens: Readonly<Partial<Record<Erc20, string>>>
  /** Contracts that payers mistake for the accepted tokens, by name. */
  readonly wrongTokens: Readonly<Record<string, string>>
}

// USDC: Circle's list of contract addresses (developers.circle.com/stablecoins/usdc-contract-addresses). USDT, DAI, WBTC
// and the wrong tokens: Uniswap's default token list 22.21, compared with Aave's address book 4.44. The issuers of USDT,
// DAI and WBTC have no contracts on test networks: an operator configures those he wants to take there.
const live: Readonly<Record<ChainName, Preset>> = {
  ethereum: {
    name: "Ethereum",
    chainId: 1,
    tokens: {
      USDC: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
      USDT: "0xdAC17F958D2ee523a2206206994597C13D831ec7",
      DAI: "0x6B175474E89094C44Da98b954EedeAC495271d0F",
      WBTC: "0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599"
    },
    wrongTokens: {}
  },
  polygon: {
    name: "Polygon",
    chainId: 137,
    tokens: {
      USDC: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
      USDT: "0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
      DAI: "0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063",
      WBTC: "0x1BFD67037B42Cf73acF2047067bd4F2C47D9BfD6"
    },
    wrongTokens: { "USDC.e": "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174" }
  },
  arbitrum: {
    name: "Arbitrum One",
    chainId: 42161,
    tokens: {
      USDC: "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
      USDT: "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
      DAI: "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1",
      WBTC: "0x2f2a2543B76A4166549F7aaB2e75Bef0aefC5B0f"
    },
    wrongTokens: { "USDC.e": "0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8" }
  },
  optimism: {
    name: "OP Mainnet",
    chainId: 10,
    tokens: {
      USDC: "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85",
      DAI: "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1"
    },
    wrongTokens: {
      "USDC.e": "0x7F5c764cBc14f9669B88837ca1490cCa17c31607",
      USDT: "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58",
      WBTC: "0x68f180fcCe6836688e9084f035309E29Bf0A2095"
    }
  },
  base: {
    name: "Base",
    chainId: 8453,
    tokens: { USDC: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913" },
    wrongTokens: {
      USDbC: "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA",
      DAI: "0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb"
    }
  }
}

const testnet = (name: string, chainId: number, usdc: string): Preset => ({
  name,
  chainId,
  tokens: { USDC: usdc },
  wrongTokens: {}
})

const test: Readonly<Record<ChainName, Preset>> = {
  ethereum: testnet("Sepolia", 11155111, "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"),
  polygon: testnet("Polygon Amoy", 80002, "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582"),
  arbitrum: testnet("Arbitrum Sepolia", 421614, "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d"),
  optimism: testnet("OP Sepolia", 11155420, "0x5fd84259d66Cd46123540766Be93DFE6D43130D7"),
  base: testnet("Base Sepolia", 84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e")
}

export const presets: Readonly<Record<Mode, Readonly<Record<ChainName, Preset>>>> = { live, test }
