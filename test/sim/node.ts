import { Array as Arr } from "effect"
import { multicall3Address } from "../../src/Chains/rpc/contractViews.ts"
import type { RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { accountAt, type Block, blockAt } from "./Block.ts"
import type { Lie } from "./Lie.ts"
import { type LogFilter, type LogNumbers, logsIn, passes } from "./logs.ts"
import { headerOf, receiptIn, type ShownLog, transactionIn } from "./shapes.ts"
import { hex, type Transaction, word } from "./transactions.ts"

/** The most logs in one answer, and the error that a node gives instead of more; without one it cuts the answer. */
export interface LogCap {
  readonly logs: number
  readonly error?: { readonly code: number; readonly message: string }
}

/** Nethermind's words and code. */
export const capped = (logs: number): LogCap => ({
  logs,
  error: { code: -32_005, message: `Too many logs requested. Max logs per response is ${logs}.` }
})
/** A code that others use for rate limits, and an unknown message. */
export const cappedInUnknownWords = (logs: number): LogCap => ({ logs, error: { code: -32_005, message: "no more" } })
/** No error: as many logs as fit, as if there were no more. */
export const cut = (logs: number): LogCap => ({ logs })

/** A node's indexes of blocks, in addition to its head. */
export interface BlockIndex {
  readonly byHash: { readonly get: (hash: string) => Block | undefined }
  /** The blocks that a transaction was ever in. */
  readonly inclusions: { readonly get: (txHash: string) => ReadonlyArray<Block> | undefined }
  /** Numbers of the tags; undefined for one that the node does not know. */
  readonly safe: number | undefined
  readonly finalized: number | undefined
}

/** What a node of a provider knows and can do. */
export interface View {
  readonly chain: BlockIndex
  readonly chainId: number
  /** The newest block that it has: maybe one of a branch that is the chain's no more. */
  readonly head: Block
  /** The block of that number on its branch; found from the head where it is not given. */
  readonly at?: (number: number) => Block | undefined
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
  /** Its headers are without a bloom. */
  readonly bloomless?: boolean
  /** Methods that it does not know. */
  readonly unserved?: ReadonlySet<string>
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

const unknownMethod = (method: string) => new Refusal(`the method ${method} does not exist/is not available`)

/** An unknown token: addresses whose money may be older than the daemon's knowledge of them are asked about. */
const balanceOfToken = "70a08231"

/** The block as the node shows it. */
const shown = ({ lie }: View, block: Block): Block => lie?.alter(block) ?? block

const nonceOf = ({ lie }: View, block: Block, address: string): number => {
  const { nonce } = accountAt(block, address)
  return lie?.nonce?.(block, address, nonce) ?? nonce
}

const balanceOf = ({ lie }: View, block: Block, address: string): bigint => {
  const { balance } = accountAt(block, address)
  return lie?.balance(block, address, balance) ?? balance
}

const header = (view: View, block: Block, full: boolean) => {
  const seen = shown(view, block)
  const { bloom, parent, transactions } = seen
  return {
    ...headerOf(seen, parent === undefined ? word(0n) : shown(view, parent).hash, view.bloomless ? undefined : bloom),
    transactions: transactions.flatMap((one, i) =>
      one.isStateSync ? [] : [full ? transactionIn(seen, one, i) : one.hash]
    )
  }
}

const logsOf = (view: View, of: Block) => logsIn(shown(view, of), view.logNumbers)

const receipt = (view: View, block: Block, one: Transaction, index: number, logs: ReadonlyArray<ShownLog>) => ({
  ...receiptIn(shown(view, block), one, index, logs),
  ...(view.layer2 ? { l1Fee: hex(one.l1Fee) } : {})
})

const receipts = (view: View, block: Block) => {
  const logs = Arr.groupBy(logsOf(view, block), ({ transactionHash }) => transactionHash)
  return shown(view, block).transactions.flatMap((one, i) =>
    one.isStateSync ? [] : [receipt(view, block, one, i, logs[one.hash] ?? [])]
  )
}

const numbered = ({ at, head }: View, number: number) => (at === undefined ? blockAt(head, number) : at(number))

/** A block by number, tag, hash or `{ blockHash }`; undefined for what the node does not have. */
export const find = (view: View, at: unknown): Block | undefined => {
  const { chain, head, lie, tags } = view
  if (typeof at === "object" && at !== null && "blockHash" in at) return find(view, at.blockHash)
  if (typeof at === "string" && at.length === 66) {
    const block = lie?.byHash(at) ?? chain.byHash.get(at)
    return block !== undefined && block.number <= head.number && shown(view, block).hash === at ? block : undefined
  }
  if (at === "latest" || at === undefined) return head
  if (at === "safe" || at === "finalized") {
    const number = tags ? chain[at] : undefined
    if (number === undefined) throw new Refusal(`unknown block tag ${at}`)
    return numbered(view, Math.max(0, Math.min(lie?.tag(number) ?? number, head.number)))
  }
  return numbered(view, Number(at))
}

const stateAt = (view: View, at: unknown): Block => {
  const block = find(view, at)
  if (block === undefined) throw new Refusal("header not found")
  if (block.number < view.head.number - view.stateDepth) throw new Refusal(`missing trie node ${block.hash} (path )`)
  return block
}

const upToCap = <A>({ cap }: View, found: ReadonlyArray<A>): ReadonlyArray<A> => {
  if (cap === undefined || found.length <= cap.logs) return found
  if (cap.error === undefined) return found.slice(0, cap.logs)
  throw new Refusal(cap.error.message, cap.error.code)
}

const logs = (view: View, filter: LogFilter) => {
  if (filter.blockHash !== undefined) {
    const block = find(view, filter.blockHash)
    if (block === undefined) throw new Refusal("unknown block")
    return upToCap(view, logsOf(view, block).filter(passes(filter)))
  }
  // A node says nothing of blocks that it does not have: there are no logs up there.
  const to = Math.min(Number(filter.toBlock), view.head.number)
  const blocks: Array<Block> = []
  let block = numbered(view, to)
  for (; block !== undefined && block.number >= Number(filter.fromBlock); block = block.parent) blocks.unshift(block)
  return upToCap(view, blocks.flatMap((one) => logsOf(view, one)).filter(passes(filter)))
}

/** A transaction with its block and its place there. */
const inclusion = (view: View, hash: unknown) => {
  const { chain, head, lie } = view
  const blocks = [...(chain.inclusions.get(String(hash)) ?? []), ...(lie?.including(String(hash), head) ?? [])]
  const block = blocks.find((one) => numbered(view, one.number) === one)
  const transactions = block === undefined ? [] : shown(view, block).transactions
  const index = transactions.findIndex((found) => found.hash === hash)
  const one = transactions[index]
  return block === undefined || one === undefined || one.isStateSync ? undefined : { block, one, index }
}

const trace = (view: View, hash: unknown) => {
  if (!view.traces) throw unknownMethod("debug_traceTransaction")
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
  if (to.toLowerCase() === multicall3Address && bytes.startsWith("82ad56cb"))
    return aggregate3(view, block, bytes.slice(8))
  return bytes.startsWith(balanceOfToken) ? word(0n) : "0x"
}

const unedited = (view: View, { method, params }: RpcRequest): unknown => {
  const [first, second, third] = params
  if (view.unserved?.has(method)) throw unknownMethod(method)
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
      return found === undefined ? null : transactionIn(shown(view, found.block), found.one, found.index)
    }
    case "eth_getTransactionReceipt": {
      const found = inclusion(view, first)
      if (found === undefined) return null
      const { block, index, one } = found
      const own = logsOf(view, block).filter((log) => log.transactionHash === one.hash)
      return receipt(view, block, one, index, own)
    }
    case "eth_getBlockReceipts": {
      const block = find(view, first)
      return block === undefined ? null : receipts(view, block)
    }
    case "eth_getBalance":
      return hex(balanceOf(view, stateAt(view, second), String(first).toLowerCase()))
    case "eth_getTransactionCount":
      return hex(nonceOf(view, stateAt(view, second), String(first).toLowerCase()))
    case "eth_call":
      return call(view, first as EthCall, second, third)
    case "debug_traceTransaction":
      return trace(view, first)
    default:
      throw unknownMethod(method)
  }
}

/** What the node answers; throws a `Refusal` where it answers with an error. */
export const answer = (view: View, call: RpcRequest): unknown => {
  const result = unedited(view, call)
  return view.lie?.answer ? view.lie.answer(call, result) : result
}
