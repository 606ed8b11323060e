import type { Block } from "./Block.ts"
import { type ShownLog, shownLog } from "./shapes.ts"
import type { Log } from "./transactions.ts"

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

const numbered = (block: Block, logNumbers: LogNumbers = 0): ReadonlyArray<ShownLog> => {
  let logIndex = 0
  return block.transactions.flatMap(({ fails, hash, logs }, index) =>
    (fails ? [] : logs).map((log, own) =>
      shownLog(log, block, { hash, index }, logNumbers === "byTransaction" ? own : logNumbers + logIndex++)
    )
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
