import type { RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import type { Lie } from "./Lie.ts"
import { type LogFilter, type LogNumbers, logsIn, passes } from "./logs.ts"
import { accountAt, type Block, blockAt, type SimChain } from "./SimChain.ts"
import { type Transaction, word } from "./transactions.ts"

/** How a node answers for logs when they are many. */
export interface LogCap {
  readonly logs: number
  /** The first of them are the whole answer; else it is an error. */
  readonly silent: boolean
}

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
  /** What it makes of the chain, where that is not the truth. */
  readonly lie?: Lie | undefined
  readonly cap?: LogCap | undefined
  readonly logNumbers?: LogNumbers
}

/** The node answers a call with an error in these words. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly code = -32_000
  ) {
    super(message)
  }
}

const hex = (value: number | bigint): string => `0x${value.toString(16)}`
const multicall3 = "0xca11bde05977b3631167028862be2a173976ca11"
/** Nobody's token: addresses whose money may be older than the daemon's knowledge of them are asked about. */
const balanceOfToken = "70a08231"

/** The block as the node shows it. */
const shown = ({ lie }: View, block: Block): Block => lie?.alter(block) ?? block

const balanceOf = ({ lie }: View, block: Block, address: string): bigint => {
  const { balance } = accountAt(block, address)
  return lie?.balance(block, address, balance) ?? balance
}

const header = (view: View, block: Block, full: boolean) => {
  const { bloom, hash, number, parent, time, transactions } = shown(view, block)
  return {
    number: hex(number),
    hash,
    parentHash: parent === undefined ? word(0n) : shown(view, parent).hash,
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
  }
}

const logsOf = (view: View, of: Block) => logsIn(shown(view, of), view.logNumbers)

const receipt = (view: View, block: Block, one: Transaction, logs = logsOf(view, block)) => ({
  transactionHash: one.hash,
  transactionIndex: hex(shown(view, block).transactions.findIndex(({ hash }) => hash === one.hash)),
  blockHash: shown(view, block).hash,
  blockNumber: hex(block.number),
  from: one.from,
  to: one.to,
  status: one.fails ? "0x0" : "0x1",
  gasUsed: hex(one.gasUsed),
  effectiveGasPrice: hex(one.gasPrice),
  ...(view.layer2 ? { l1Fee: hex(one.l1Fee) } : {}),
  logs: logs.filter((log) => log.transactionHash === one.hash)
})

/** A block by number, tag, hash or `{ blockHash }`; undefined for what the node does not have. */
const find = (view: View, at: unknown): Block | undefined => {
  const { chain, head, lie, tags } = view
  if (typeof at === "object" && at !== null && "blockHash" in at) return find(view, at.blockHash)
  if (typeof at === "string" && at.length === 66) {
    const block = lie?.byHash(at) ?? chain.byHash.get(at)
    return block !== undefined && block.number <= head.number && shown(view, block).hash === at ? block : undefined
  }
  if (at === "latest" || at === undefined) return head
  if (at === "safe" || at === "finalized") {
    if (!tags) throw new Refusal(`unknown block tag ${at}`)
    return blockAt(head, Math.max(0, Math.min(lie?.tag(chain[at]) ?? chain[at], head.number)))
  }
  return blockAt(head, Number(at))
}

const stateAt = (view: View, at: unknown): Block => {
  const block = find(view, at)
  if (block === undefined) throw new Refusal("header not found")
  if (block.number < view.head.number - view.stateDepth) throw new Refusal(`missing trie node ${block.hash} (path )`)
  return block
}

const capped = <A>({ cap }: View, found: ReadonlyArray<A>): ReadonlyArray<A> => {
  if (cap === undefined || found.length <= cap.logs) return found
  if (cap.silent) return found.slice(0, cap.logs)
  // Nethermind's words and code.
  throw new Refusal(`Too many logs requested. Max logs per response is ${cap.logs}.`, -32_005)
}

const logs = (view: View, filter: LogFilter) => {
  if (filter.blockHash !== undefined) {
    const block = find(view, filter.blockHash)
    if (block === undefined) throw new Refusal("unknown block")
    return capped(view, logsOf(view, block).filter(passes(filter)))
  }
  // A node says nothing of blocks that it does not have: there are no logs up there.
  const to = Math.min(Number(filter.toBlock), view.head.number)
  const blocks: Array<Block> = []
  let block = blockAt(view.head, to)
  for (; block !== undefined && block.number >= Number(filter.fromBlock); block = block.parent) blocks.unshift(block)
  return capped(view, blocks.flatMap((one) => logsOf(view, one)).filter(passes(filter)))
}

const inclusion = (view: View, hash: unknown) => {
  const { chain, head, lie } = view
  const blocks = [...(chain.inclusions.get(String(hash)) ?? []), ...(lie?.including(String(hash), head) ?? [])]
  const block = blocks.find((one) => blockAt(head, one.number) === one)
  const one = block && shown(view, block).transactions.find((found) => found.hash === hash)
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

/** Multicall3's `aggregate3` of its own `getEthBalance`, or of tokens' balances, https://github.com/mds1/multicall3. */
const aggregate3 = (view: View, block: Block, words: string): string => {
  const count = uint(words, 1)
  const results = Array.from({ length: count }, (_, i) => {
    // (target, allowFailure, bytes): the bytes come fourth, after their length.
    const start = 2 + uint(words, 2 + i) / 32
    const data = words.slice((start + 4) * 64, (start + 4) * 64 + uint(words, start + 3) * 2)
    const isOfCoin = data.startsWith("4d2301cc")
    if (!isOfCoin && !data.startsWith(balanceOfToken)) throw new Refusal("execution reverted")
    const balance = isOfCoin ? balanceOf(view, block, `0x${data.slice(32, 72)}`) : 0n
    return [word(1n), word(64n), word(32n), word(balance)].map((one) => one.slice(2)).join("")
  })
  const offsets = results.map((_, i) => word(BigInt(count * 32 + i * 128)).slice(2))
  return `0x${word(32n).slice(2)}${word(BigInt(count)).slice(2)}${offsets.join("")}${results.join("")}`
}

/** The oracle's contract, which an override puts where there is none: balances of packed addresses. */
const balancesOf = (view: View, block: Block, packed: string): string =>
  `0x${(packed.match(/.{40}/g) ?? []).map((address) => word(balanceOf(view, block, `0x${address}`)).slice(2)).join("")}`

const call = (view: View, { data, input, to }: EthCall, at: unknown, overrides: unknown): string => {
  const block = stateAt(view, at)
  const bytes = (data ?? input ?? "0x").slice(2).toLowerCase()
  if (typeof overrides === "object" && overrides !== null && Object.keys(overrides).length > 0) {
    if (!view.overrides) throw new Refusal("too many arguments, want at most 2")
    return balancesOf(view, block, bytes)
  }
  if (to.toLowerCase() === multicall3 && bytes.startsWith("82ad56cb")) return aggregate3(view, block, bytes.slice(8))
  return bytes.startsWith(balanceOfToken) ? word(0n) : "0x"
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
      return block === undefined ? null : header(view, block, second === true)
    }
    case "eth_getLogs":
      return logs(view, first as LogFilter)
    case "eth_getTransactionByHash": {
      const found = inclusion(view, first)
      return found === undefined
        ? null
        : header(view, found.block, true).transactions[shown(view, found.block).transactions.indexOf(found.one)]
    }
    case "eth_getTransactionReceipt": {
      const found = inclusion(view, first)
      return found === undefined ? null : receipt(view, found.block, found.one)
    }
    case "eth_getBlockReceipts": {
      const block = find(view, first)
      if (block === undefined) return null
      const logs = logsOf(view, block)
      return shown(view, block).transactions.map((one) => receipt(view, block, one, logs))
    }
    case "eth_getBalance":
      return hex(balanceOf(view, stateAt(view, second), String(first).toLowerCase()))
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
