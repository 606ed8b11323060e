/** Single values: money, times, statuses, transactions and addresses. */
import type { ComponentChildren } from "preact"
import { formatAmount } from "../../Domain/amountDecimals.ts"
import { iso } from "../../Domain/Timestamp.ts"

/** An amount of base units as people write it: all its decimals, and at least two. */
export const moneyText = (amount: bigint, currency: string, decimals: number | undefined): string => {
  const text = formatAmount(amount.toString(), currency, decimals)
  return text.replace(/(\.[0-9]{2}[0-9]*?)0+(?= )/, "$1")
}

export interface MoneyProps {
  /** Base units. */
  readonly amount: bigint
  readonly currency: string
  /** By `decimalsOn`. */
  readonly decimals: number | undefined
}

export const Money = ({ amount, currency, decimals }: MoneyProps) => (
  <span class="money">{moneyText(amount, currency, decimals)}</span>
)

/** A time, in Unix milliseconds or as `iso` writes it. */
export const Time = ({ at }: { readonly at: number | string }) => {
  const text = typeof at === "string" ? at : iso(at)
  return <time dateTime={text}>{`${text.slice(0, 10)} ${text.slice(11, 19)} UTC`}</time>
}

export type Tone = "good" | "warning" | "bad" | "neutral"

const tones: Readonly<Record<string, Tone>> = {
  confirmed: "good",
  delivered: "good",
  accepted: "good",
  healthy: "good",
  active: "good",
  detecting: "warning",
  failing: "warning",
  open: "warning",
  failed: "bad",
  unhealthy: "bad",
  revoked: "bad"
}

/** A status in its colour; the word says the same. */
export const Status = ({ of, tone = tones[of] ?? "neutral" }: { readonly of: string; readonly tone?: Tone }) => (
  <span class={`badge ${tone}`}>{of.replaceAll("_", " ")}</span>
)

/** Something that was done, or that the reader has to know. */
export const Notice = ({ children, tone }: { readonly tone: Tone; readonly children: ComponentChildren }) => (
  <div class={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>
    {children}
  </div>
)

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

export interface OnChainProps {
  /** A transaction's hash, or an address. */
  readonly value: string
  readonly kind: "tx" | "address"
  /** Undefined where the chain is no longer configured. */
  readonly chainId: number | undefined
  /** Only its ends, for tables. */
  readonly short?: boolean
}

/** A transaction or an address, with a link to the chain's explorer where there is one. */
export const OnChain = ({ chainId, kind, short, value }: OnChainProps) => {
  const explorer = chainId === undefined ? undefined : explorers.get(chainId)
  const text = short ? `${value.slice(0, 8)}…${value.slice(-6)}` : value
  const code = <code title={short ? value : undefined}>{text}</code>
  return explorer === undefined ? (
    code
  ) : (
    <a href={`${explorer}/${kind}/${value}`} rel="noopener noreferrer">
      {code}
    </a>
  )
}
