import type { Block } from "./SimChain.ts"
import type { Log } from "./transactions.ts"

const hex = (value: number): string => `0x${value.toString(16)}`

/**
 * Added to the number of each log in its block, or "byTransaction": each transaction's logs are numbered from 0.
 * Honest nodes differ in this: erigon issues 13542 and 17249.
 */
export type LogNumbers = number | "byTransaction" | undefined

export interface LogFilter {
  readonly fromBlock?: string
  readonly toBlock?: string
  readonly blockHash?: string
  readonly address?: string | ReadonlyArray<string>
  readonly topics?: ReadonlyArray<null | string | ReadonlyArray<string>>
}

/** Whether a log is among what a filter asks for. */
export const passes = ({ address, topics = [] }: LogFilter): ((log: Log) => boolean) => {
  const setOf = (of: string | ReadonlyArray<string>) => new Set(typeof of === "string" ? [of] : of)
  const contracts = address === undefined ? undefined : setOf(address)
  const wanted = topics.map((topic) => (topic === null ? undefined : setOf(topic)))
  return (log) =>
    (contracts?.has(log.address) ?? true) && wanted.every((topic, i) => topic?.has(log.topics[i] ?? "") ?? true)
}

export interface ShownLog extends Log {
  readonly blockNumber: string
  readonly blockHash: string
  readonly transactionHash: string
  readonly transactionIndex: string
  readonly logIndex: string
  readonly removed: boolean
}

const numbered = ({ hash, number, transactions }: Block, logNumbers: LogNumbers = 0): ReadonlyArray<ShownLog> => {
  let logIndex = 0
  return transactions.flatMap((one, i) =>
    one.fails
      ? []
      : one.logs.map((log, own) => ({
          ...log,
          blockNumber: hex(number),
          blockHash: hash,
          transactionHash: one.hash,
          transactionIndex: hex(i),
          logIndex: hex(logNumbers === "byTransaction" ? own : logNumbers + logIndex++),
          removed: false
        }))
  )
}

/** Blocks with a thousand logs are asked for over and over. */
const known = new WeakMap<Block, Map<LogNumbers, ReadonlyArray<ShownLog>>>()

/** The logs of a block as a node shows it. */
export const logsIn = (block: Block, logNumbers: LogNumbers): ReadonlyArray<ShownLog> => {
  if (block.transactions.length === 0) return []
  const byNumbers = known.get(block) ?? new Map<LogNumbers, ReadonlyArray<ShownLog>>()
  known.set(block, byNumbers)
  const found = byNumbers.get(logNumbers) ?? numbered(block, logNumbers)
  byNumbers.set(logNumbers, found)
  return found
}
