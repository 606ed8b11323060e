import type { ChainName } from "../../Domain/Chain.ts"
import type { QuoteCurrency } from "../../Domain/Quote.ts"
import { presets } from "../../Settings/publicNetworks.ts"
import type { ChainSettings } from "../../Settings.ts"

/** A price feed contract of Chainlink. */
export interface Feed {
  /** What its `description()` returns. */
  readonly description: string
  readonly address: string
  /** It is updated at least this often, in seconds. */
  readonly heartbeat: number
}

/** The feeds of a chain. */
export interface ChainFeeds {
  /** The feed that reports whether the chain's sequencer is up: while it is down, no feed is updated. */
  readonly sequencerUptime?: string
  /** The price in USD is the product of the feeds. */
  readonly prices: Readonly<Partial<Record<QuoteCurrency, ReadonlyArray<Feed>>>>
}

const feed = (description: string, address: string, heartbeat: number): Feed => ({ description, address, heartbeat })

// Addresses and heartbeats as Chainlink lists them: docs.chain.link/data-feeds/price-feeds/addresses, and for the
// sequencer docs.chain.link/data-feeds/l2-sequencer-feeds.
const feeds: Readonly<Partial<Record<ChainName, ChainFeeds>>> = {
  ethereum: {
    prices: {
      ETH: [feed("ETH / USD", "0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419", 3_600)],
      WBTC: [
        feed("WBTC / BTC", "0xfdFD9C85aD200c506Cf9e21F1FD8dd01932FBB23", 86_400),
        feed("BTC / USD", "0xF4030086522a5bEEa4988F8cA5B36dbC97BeE88c", 3_600)
      ],
      USDC: [feed("USDC / USD", "0x8fFfFfd4AfB6115b954Bd326cbe7B4BA576818f6", 86_400)],
      USDT: [feed("USDT / USD", "0x3E7d1eAB13ad0104d2750B8863b489D65364e32D", 86_400)],
      DAI: [feed("DAI / USD", "0xAed0c38402a5d19df6E4c03F4E2DceD6e29c1ee9", 3_600)],
      MATIC: [feed("MATIC / USD", "0x7bAC85A8a13A4BcD8abb3eB7d6b4d632c5a57676", 3_600)],
      EUR: [feed("EUR / USD", "0xb49f677943BC038e9857d61E7d053CaA2C1734C1", 86_400)],
      GBP: [feed("GBP / USD", "0x5c0Ab2d9b5a7ed9f470386e82BB36A3613cDd4b5", 86_400)]
    }
  },
  polygon: {
    prices: {
      EUR: [feed("EUR / USD", "0x73366Fe0AA0Ded304479862808e02506FE556a98", 27)],
      GBP: [feed("GBP / USD", "0x099a2540848573e94fb1Ca0Fa420b00acbBc845a", 27)],
      MXN: [feed("MXN / USD", "0x171b16562EA3476F5C61d1b8dad031DbA0768545", 86_400)]
    }
  },
  base: {
    sequencerUptime: "0xBCF85224fc0756B9Fa45aA7892530B47e10b6433",
    prices: { MXN: [feed("MXN / USD", "0x9e8Ee77c76d4fa41306056D1C3196AF5da1600bd", 3_600)] }
  }
}

/** The feeds of a configured chain; undefined unless it is the public network that they are on. */
export const feedsOf = ({ chain, chainId, mode }: ChainSettings): ChainFeeds | undefined =>
  mode === "live" && chainId === presets.live[chain].chainId ? feeds[chain] : undefined
