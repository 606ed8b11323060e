/** Small drawings beside words, in the words' colour; never alone. Those of networks and tokens are drawn here, as no logo. */
import type { ChainName } from "../Domain/Chain.ts"

const strokes = {
  tick: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  back: "M14.5 6l-6 6 6 6",
  wallet: "M4 7.5h13a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2zm0 0A2 2 0 0 1 6 5.5h10M15.5 13h.01",
  external: "M13 5h6v6M19 5l-9 9M16 14v5H5V8h5"
} as const
export type MarkName = keyof typeof strokes

export const Mark = ({ of }: { readonly of: MarkName }) => (
  <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
    <path d={strokes[of]} />
  </svg>
)

/** White on a disc in the network's colour, which `tokens.css` has. */
const figures: Readonly<Record<ChainName, string>> = {
  ethereum: "M12 4.5l4.5 7.5L12 14.7 7.5 12zM7.5 13.6L12 19.5l4.5-5.9L12 16.3z",
  polygon: "M12 5l6 3.5v7L12 19l-6-3.5v-7zm0 3.2L8.8 10v4l3.2 1.8 3.2-1.8v-4z",
  arbitrum: "M11 5.5h2L18.5 18.5H16L12 9.3 8 18.5H5.5z",
  optimism: "M8.3 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM14 8.5h2.5a2.6 2.6 0 0 1 0 5.2H16v1.8h-2z",
  base: "M12 6a6 6 0 1 1-5.9 7H13v-2H6.1A6 6 0 0 1 12 6z"
}

export const NetworkMark = ({ of }: { readonly of: ChainName }) => (
  <svg class={`disc ${of}`} viewBox="0 0 24 24" aria-hidden="true">
    <circle cx="12" cy="12" r="12" />
    <path d={figures[of]} />
  </svg>
)
