import type { RpcRequest } from "../../src/Chains/Rpc.ts"
import { accountAt, type Block, blockAt, type SimChain } from "./SimChain.ts"
import { type Log, type Transaction, word } from "./transactions.ts"

/** What a node of a provider knows and can do. */
export interface View {
  readonly chain: SimChain
  readonly chainId: number
  /** The newest block that it has: maybe one of a branch that is the chain's no more. */
  readonly head: Block
  readonly overrides: boolean
  readonly traces: boolean
  readonly tags: boolean
  /** The l1Fee of receipts. */
  readonly layer2: boolean
  /** Blocks behind the head whose state is kept. */
  readonly stateDepth: number
}

/** The node answers a call with an error in these words. */
export class Refusal extends Error {}

const hex = (value: number | bigint): string => `0x${value.toString(16)}`
const multicall3 = "0xca11bde05977b3631167028862be2a173976ca11"

const header = ({ bloom, hash, number, parent, time, transactions }: Block, full: boolean) => ({
  number: hex(number),
  hash,
  parentHash: parent?.hash ?? word(0n),
  timestamp: hex(time),
  logsBloom: bloom,
  transactions: transactions.map((one, i) =>
    full
      ? {
          hash: one.hash,
          blockHash: hash,
          blockNumber: hex(number),
          transactionIndex: hex(i),
          from: one.from,
          to: one.to,
          value: hex(one.value),
          gas: hex(one.gasUsed),
          input: one.input
        }
      : one.hash
  )
})

interface LogFilter {
  readonly fromBlock?: string
  readonly toBlock?: string
  readonly blockHash?: string
  readonly address?: string | ReadonlyArray<string>
  readonly topics?: ReadonlyArray<null | string | ReadonlyArray<string>>
}

const passes = (log: Log, { address, topics = [] }: LogFilter): boolean => {
  const isOne = (of: string | ReadonlyArray<string>, value: string | undefined) =>
    value !== undefined && (typeof of === "string" ? of === value : of.includes(value))
  return (
    (address === undefined || isOne(address, log.address)) &&
    topics.every((topic, i) => topic === null || isOne(topic, log.topics[i]))
  )
}

const logsOf = (block: Block) => {
  let logIndex = 0
  return block.transactions.flatMap((one, i) =>
    one.fails
      ? []
      : one.logs.map((log) => ({
          ...log,
          blockNumber: hex(block.number),
          blockHash: block.hash,
          transactionHash: one.hash,
          transactionIndex: hex(i),
          logIndex: hex(logIndex++),
          removed: false
        }))
  )
}

const receipt = (view: View, block: Block, one: Transaction) => ({
  transactionHash: one.hash,
  transactionIndex: hex(block.transactions.indexOf(one)),
  blockHash: block.hash,
  blockNumber: hex(block.number),
  from: one.from,
  to: one.to,
  status: one.fails ? "0x0" : "0x1",
  gasUsed: hex(one.gasUsed),
  effectiveGasPrice: hex(one.gasPrice),
  ...(view.layer2 ? { l1Fee: hex(one.l1Fee) } : {}),
  logs: logsOf(block).filter((log) => log.transactionHash === one.hash)
})

/** A block by number, tag, hash or `{ blockHash }`; undefined for what the node does not have. */
const find = ({ chain, head, tags }: View, at: unknown): Block | undefined => {
  if (typeof at === "object" && at !== null && "blockHash" in at)
    return find({ chain, head, tags } as View, at.blockHash)
  if (typeof at === "string" && at.length === 66) {
    const block = chain.byHash.get(at)
    return block !== undefined && block.number <= head.number ? block : undefined
  }
  if (at === "latest" || at === undefined) return head
  if (at === "safe" || at === "finalized") {
    if (!tags) throw new Refusal(`unknown block tag ${at}`)
    return blockAt(head, Math.max(0, Math.min(chain[at], head.number)))
  }
  return blockAt(head, Number(at))
}

const stateAt = (view: View, at: unknown): Block => {
  const block = find(view, at)
  if (block === undefined) throw new Refusal("header not found")
  if (block.number < view.head.number - view.stateDepth) throw new Refusal(`missing trie node ${block.hash} (path )`)
  return block
}

const logs = (view: View, filter: LogFilter) => {
  if (filter.blockHash !== undefined) {
    const block = find(view, filter.blockHash)
    if (block === undefined) throw new Refusal("unknown block")
    return logsOf(block).filter((log) => passes(log, filter))
  }
  // A node says nothing of blocks that it does not have: there are no logs up there.
  const to = Math.min(Number(filter.toBlock), view.head.number)
  const blocks: Array<Block> = []
  let block = blockAt(view.head, to)
  for (; block !== undefined && block.number >= Number(filter.fromBlock); block = block.parent) blocks.unshift(block)
  return blocks.flatMap(logsOf).filter((log) => passes(log, filter))
}

const inclusion = ({ chain, head }: View, hash: unknown) => {
  const block = chain.inclusions.get(String(hash))?.find((one) => blockAt(head, one.number) === one)
  const one = block?.transactions.find((found) => found.hash === hash)
  return block === undefined || one === undefined ? undefined : { block, one }
}

const trace = (view: View, hash: unknown) => {
  if (!view.traces) throw new Refusal("the method debug_traceTransaction does not exist/is not available")
  const found = inclusion(view, hash)
  if (found === undefined) throw new Refusal("transaction not found")
  const { fails, from, inner, input, to, value } = found.one
  return {
    type: "CALL",
    from,
    to,
    value: hex(value),
    input,
    ...(fails ? { error: "execution reverted" } : {}),
    calls: fails ? [] : inner.map((call) => ({ ...call, value: hex(call.value), input: "0x" }))
  }
}

interface EthCall {
  readonly to: string
  readonly data?: string
  readonly input?: string
}

const uint = (text: string, at: number): number => Number(`0x${text.slice(at * 64, at * 64 + 64)}`)

/** Multicall3's `aggregate3` of its own `getEthBalance`, https://github.com/mds1/multicall3. */
const aggregate3 = (block: Block, words: string): string => {
  const count = uint(words, 1)
  const results = Array.from({ length: count }, (_, i) => {
    // (target, allowFailure, bytes): the bytes come fourth, after their length.
    const start = 2 + uint(words, 2 + i) / 32
    const data = words.slice((start + 4) * 64, (start + 4) * 64 + uint(words, start + 3) * 2)
    if (!data.startsWith("4d2301cc")) throw new Refusal("execution reverted")
    const { balance } = accountAt(block, `0x${data.slice(32, 72)}`)
    return [word(1n), word(64n), word(32n), word(balance)].map((one) => one.slice(2)).join("")
  })
  const offsets = results.map((_, i) => word(BigInt(count * 32 + i * 128)).slice(2))
  return `0x${word(32n).slice(2)}${word(BigInt(count)).slice(2)}${offsets.join("")}${results.join("")}`
}

/** The oracle's contract, which an override puts where there is none: balances of packed addresses. */
const balancesOf = (block: Block, packed: string): string =>
  `0x${(packed.match(/.{40}/g) ?? []).map((address) => word(accountAt(block, `0x${address}`).balance).slice(2)).join("")}`

const call = (view: View, { data, input, to }: EthCall, at: unknown, overrides: unknown): string => {
  const block = stateAt(view, at)
  const bytes = (data ?? input ?? "0x").slice(2).toLowerCase()
  if (typeof overrides === "object" && overrides !== null && Object.keys(overrides).length > 0) {
    if (!view.overrides) throw new Refusal("too many arguments, want at most 2")
    return balancesOf(block, bytes)
  }
  if (to.toLowerCase() === multicall3 && bytes.startsWith("82ad56cb")) return aggregate3(block, bytes.slice(8))
  // Nobody's token: the vetting of addresses asks for balances of all.
  return bytes.startsWith("70a08231") ? word(0n) : "0x"
}

/** What the node answers; throws a `Refusal` where it answers with an error. */
export const answer = (view: View, { method, params }: RpcRequest): unknown => {
  const [first, second, third] = params
  switch (method) {
    case "eth_chainId":
      return hex(view.chainId)
    case "eth_gasPrice":
      return "0x3b9aca00"
    case "eth_getBlockByNumber":
    case "eth_getBlockByHash": {
      const block = find(view, first)
      return block === undefined ? null : header(block, second === true)
    }
    case "eth_getLogs":
      return logs(view, first as LogFilter)
    case "eth_getTransactionByHash": {
      const found = inclusion(view, first)
      return found === undefined
        ? null
        : header(found.block, true).transactions[found.block.transactions.indexOf(found.one)]
    }
    case "eth_getTransactionReceipt": {
      const found = inclusion(view, first)
      return found === undefined ? null : receipt(view, found.block, found.one)
    }
    case "eth_getBlockReceipts": {
      const block = find(view, first)
      return block === undefined ? null : block.transactions.map((one) => receipt(view, block, one))
    }
    case "eth_getBalance":
      return hex(accountAt(stateAt(view, second), String(first).toLowerCase()).balance)
    case "eth_getTransactionCount":
      return hex(accountAt(stateAt(view, second), String(first).toLowerCase()).nonce)
    case "eth_call":
      return call(view, first as EthCall, second, third)
    case "debug_traceTransaction":
      return trace(view, first)
    default:
      throw new Refusal(`the method ${method} does not exist/is not available`)
  }
}
