/** Small drawings beside words, in the words' colour; never alone. Those of networks and currencies are drawn here, as no logo. */
import type { ChainName } from "../Domain/Chain.ts"
import type { Token } from "../Domain/Currency.ts"

const strokes = {
  till: "M5 10.5h14l1.5 8.5h-17zM8 10.5V5.5h8v5M9.5 14.5h5",
  tick: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  back: "M14.5 6l-6 6 6 6",
  wallet: "M4 7.5h13a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2zm0 0A2 2 0 0 1 6 5.5h10M15.5 13h.01",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4.2l2.7 1.8",
  copy: "M10.5 9h8a1.5 1.5 0 0 1 1.5 1.5v8a1.5 1.5 0 0 1-1.5 1.5h-8A1.5 1.5 0 0 1 9 18.5v-8A1.5 1.5 0 0 1 10.5 9zM5.5 15A1.5 1.5 0 0 1 4 13.5v-8A1.5 1.5 0 0 1 5.5 4h8A1.5 1.5 0 0 1 15 5.5",
  external: "M13 5h6v6M19 5l-9 9M16 14v5H5V8h5"
} as const

export const Mark = ({ of }: { readonly of: keyof typeof strokes }) => (
  <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
    <path d={strokes[of]} />
  </svg>
)

/** White on a disc whose colour `tokens.css` has: shapes for networks, letters for currencies. */
const figures: Readonly<Record<ChainName | Token, string>> = {
  ethereum: "M12 4.5l4.5 7.5L12 14.7 7.5 12zM7.5 13.6L12 19.5l4.5-5.9L12 16.3z",
  polygon: "M12 5l6 3.5v7L12 19l-6-3.5v-7zm0 3.2L8.8 10v4l3.2 1.8 3.2-1.8v-4z",
  arbitrum: "M11 5.5h2L18.5 18.5H16L12 9.3 8 18.5H5.5z",
  optimism: "M12 5.5l6 6h-3.4L12 8.9l-2.6 2.6H6zM12 12l6 6h-3.4L12 15.4 9.4 18H6z",
  base: "M5.5 11h13a6.5 6.5 0 0 1-13 0z",
  ETH: "M7 6.5h10v2.2H7zM8 10.9h8v2.2H8zM7 15.3h10v2.2H7z",
  USDC: "M11 5h2v2h3v2.2h-5.6a.9.9 0 0 0 0 1.8h3.2a3.1 3.1 0 0 1 0 6.2H13V19h-2v-1.8H7.8V15h5.8a.9.9 0 0 0 0-1.8h-3.2a3.1 3.1 0 0 1 0-6.2h.6z",
  USDT: "M6.5 6.5h11V9h-4.2v8.5h-2.6V9H6.5z",
  DAI: "M8 6.5h4a5.5 5.5 0 0 1 0 11H8zm2.5 2.4v6.2H12a3.1 3.1 0 0 0 0-6.2z",
  WBTC: "M8.5 6.5h4.6a2.9 2.9 0 0 1 1.7 5.2 3.1 3.1 0 0 1-1.4 5.8H8.5zm2.4 2.1v2.2h1.9a1.1 1.1 0 0 0 0-2.2zm0 4.2v2.6h2.2a1.3 1.3 0 0 0 0-2.6z",
  MATIC: "M6.5 17.5v-11H9l3 4.6 3-4.6h2.5v11H15v-6.7l-3 4.5-3-4.5v6.7z"
}

/** The mark of a network or a currency. */
export const Disc = ({ of }: { readonly of: ChainName | Token }) => (
  <svg class={`disc ${of}`} viewBox="0 0 24 24" aria-hidden="true">
    <circle cx="12" cy="12" r="12" />
    <path d={figures[of]} />
  </svg>
)
