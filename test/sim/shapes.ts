import type { BlockRef } from "../../src/Domain/Receipt.ts"
import { hex, type Log, type Transaction } from "./transactions.ts"

// What nodes show, in the form that all of them give it.

type BlockId = Pick<BlockRef, "hash" | "number">

export interface ShownLog extends Log {
  readonly blockNumber: string
  readonly blockHash: string
  readonly transactionHash: string
  readonly transactionIndex: string
  readonly logIndex: string
  readonly removed: boolean
}

/** A log as nodes show it, where it is. */
export const shownLog = (
  log: Log,
  { hash, number }: BlockId,
  transaction: { readonly hash: string; readonly index: number },
  logIndex: number
): ShownLog => ({
  ...log,
  blockNumber: hex(number),
  blockHash: hash,
  transactionHash: transaction.hash,
  transactionIndex: hex(transaction.index),
  logIndex: hex(logIndex),
  removed: false
})

/** A block's header. */
export const headerOf = ({ hash, number, time }: BlockRef, parentHash: string, logsBloom?: string) => ({
  number: hex(number),
  hash,
  parentHash,
  timestamp: hex(time),
  ...(logsBloom === undefined ? {} : { logsBloom })
})

/** A transaction with its place. */
export const transactionIn = (
  { hash: blockHash, number }: BlockId,
  { from, gas, hash, input, to, value }: Transaction,
  index: number
) => ({
  hash,
  blockHash,
  blockNumber: hex(number),
  transactionIndex: hex(index),
  from,
  to,
  value: hex(value),
  gas: hex(gas),
  input
})

/** A transaction's receipt; `logs`: its own. */
export const receiptIn = (
  { hash, number }: BlockId,
  one: Transaction,
  index: number,
  logs: ReadonlyArray<unknown>
) => ({
  transactionHash: one.hash,
  transactionIndex: hex(index),
  blockHash: hash,
  blockNumber: hex(number),
  from: one.from,
  to: one.to,
  status: one.fails ? "0x0" : "0x1",
  gasUsed: hex(one.gasUsed),
  effectiveGasPrice: hex(one.gasPrice),
  logs
})
