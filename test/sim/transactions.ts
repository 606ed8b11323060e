import { createHash } from "node:crypto"
import { transferTopic } from "../../src/Chains/rpc/methods.ts"

export const hex = (value: number | bigint): string => `0x${value.toString(16)}`
export const word = (value: bigint): string => `0x${value.toString(16).padStart(64, "0")}`
const topicOf = (address: string): string => `0x${"0".repeat(24)}${address.slice(2)}`
export const hashOf = (text: string): string => `0x${createHash("sha256").update(text).digest("hex")}`
export const addressOf = (text: string): string => hashOf(text).slice(0, 42)

export interface Log {
  readonly address: string
  readonly topics: ReadonlyArray<string>
  readonly data: string
}

/** Coins that a contract moves while a transaction runs. */
export interface Inner {
  readonly type: "CALL" | "SELFDESTRUCT"
  readonly from: string
  readonly to: string
  readonly value: bigint
}

/** A transaction as it was signed, with what it does when it succeeds. It keeps its hash in whatever block it is. */
export interface Transaction {
  readonly hash: string
  readonly from: string
  readonly to: string
  readonly value: bigint
  readonly input: string
  readonly fails: boolean
  readonly logs: ReadonlyArray<Log>
  readonly inner: ReadonlyArray<Inner>
  /** Its limit: one of 21,000 runs no code. */
  readonly gas: bigint
  readonly gasUsed: bigint
  /** Wei for a unit. */
  readonly gasPrice: bigint
  /** Some chains also charge a fee for the other layer, and report it in the receipt. */
  readonly l1Fee: bigint
  /** Nodes list its logs, and know nothing else of it: a state sync on Polygon. Its logs are in no bloom. */
  readonly isStateSync?: boolean
}

export const feeOf = ({ gasPrice, gasUsed, l1Fee }: Transaction): bigint => gasUsed * gasPrice + l1Fee

/** From an account outside the test with more than it will ever need. */
export const payer = addressOf("a payer")
/** A contract that pays out what it is sent, and what it has. */
export const paymaster = addressOf("a contract that pays many at once")
/** Whether the balance of an account is not counted. */
export const isRich = (address: string): boolean => address === payer || address === paymaster

export const transaction = (name: string, over: Partial<Transaction>): Transaction => ({
  hash: hashOf(`transaction ${name}`),
  from: payer,
  to: payer,
  value: 0n,
  input: "0x",
  fails: false,
  logs: [],
  inner: [],
  gas: over.gasUsed ?? 21_000n,
  gasUsed: 21_000n,
  gasPrice: 1_000_000_000n,
  l1Fee: 0n,
  ...over
})

/** An ERC-20 Transfer log; the receiver is where a contract that wants to be taken for a token would put it, too. */
export const transferLog = (contract: string, to: string, value: bigint): Log => ({
  address: contract,
  topics: [transferTopic, topicOf(payer), topicOf(to)],
  data: word(value)
})

/** ERC-721 shares the topic, and puts the token's id where nothing else is. */
export const nonFungibleLog = (contract: string, to: string, id: bigint): Log => ({
  address: contract,
  topics: [transferTopic, topicOf(payer), topicOf(to), word(id)],
  data: "0x"
})
