import { randomBytes } from "node:crypto"
import { Either } from "effect"
import { AddressSet } from "../../src/Chains/ledger/AddressSet.ts"
import { transferTopic } from "../../src/Chains/rpc/methods.ts"
import { strayBlock, tokenTransfers } from "../../src/Chains/scan/transfers.ts"

const logs = 5_000
const addresses = 100_000
const rounds = 60

const hex = (bytes: number): string => `0x${randomBytes(bytes).toString("hex")}`
const topic = (address: string): string => `0x${"0".repeat(24)}${address.slice(2)}`

/** The answer to `eth_getLogs` for one block, as a node writes it, with a hit in every thousand logs. */
const answer = (contract: string, block: string, watched: ReadonlyArray<string>): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: 0,
    result: Array.from({ length: logs }, (_, i) => ({
      address: contract,
      topics: [transferTopic, topic(hex(20)), topic(i % 1000 === 0 ? (watched[i] ?? hex(20)) : hex(20))],
      data: hex(32),
      blockHash: block,
      blockNumber: "0x1406f40",
      blockTimestamp: "0x66d2a5f3",
      transactionHash: hex(32),
      transactionIndex: `0x${(i >> 2).toString(16)}`,
      logIndex: `0x${i.toString(16)}`,
      removed: false
    }))
  })

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN

const timed = <A>(work: () => A): readonly [millis: number, result: A] => {
  const started = performance.now()
  const result = work()
  return [performance.now() - started, result]
}

/**
 * What matching a block of 5,000 logs against 100,000 watched addresses costs, beside the `JSON.parse` of the same
 * block. Both in one process, by turns, medians in milliseconds.
 */
export const run = () => {
  const watched = new AddressSet()
  const known = Array.from({ length: addresses }, () => hex(20))
  for (const address of known) watched.add(address)
  const [contract, block] = [hex(20), hex(32)]
  const text = answer(contract, block, known)
  const contracts = new Map([[contract, "USDC"]])
  const parses: Array<number> = []
  const matches: Array<number> = []
  for (let i = 0; i < rounds; i++) {
    const [parse, parsed] = timed(() => JSON.parse(text) as { readonly result: ReadonlyArray<unknown> })
    const [match, found] = timed(() => {
      if (strayBlock(parsed.result, new Set([block])) !== undefined) throw new Error("a stray log")
      return Either.getOrThrow(tokenTransfers(parsed.result, contracts, watched))
    })
    if (found.length !== logs / 1000) throw new Error(`found ${found.length} transfers`)
    parses.push(parse)
    matches.push(match)
  }
  const parseMs = median(parses)
  const matchMs = median(matches)
  return { parseMs, matchMs, ratio: matchMs / parseMs }
}
