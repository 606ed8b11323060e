import type { RpcReason } from "./RpcError.ts"

/** What a refusal comes down to. */
export interface ErrorMeaning {
  readonly reason: RpcReason
  /** The most blocks that one call may span, where the words name it. */
  readonly maxBlocks: number | undefined
  /** Blocks that this one call should have spanned, where the words suggest it: it had too many results. */
  readonly suggestedBlocks: number | undefined
  /** The most calls that one batch may have, where the words name it. */
  readonly maxCalls: number | undefined
}

/** Words of a provider, and their meaning. `blocks` or `calls` are the limit in them, `from` and `to` a suggestion. */
interface Words {
  readonly pattern: RegExp
  readonly reason: RpcReason
}

const means =
  (reason: RpcReason) =>
  (pattern: RegExp): Words => ({ pattern, reason })

/**
 * What nodes and providers say when they refuse a call, first match first. Codes tell little: -32600, -32602, -32000 and
 * -32005 each stand for several of these. Collected from issue trackers and clients' tests; the test has each in full.
 */
const known: ReadonlyArray<Words> = [
  // A contract chooses these words, so nothing more may be read from them.
  ...[/^[a-z ]{0,30}revert/i, /^VM (?:exception|execution)/i].map(means("refused")),

  ...[
    // dRPC, 1RPC
    /batch of more than (?<calls>\d+) requests/i,
    // erigon, geth
    /batch limit (?<calls>\d+) exceeded/i,
    // reth and others by jsonrpsee
    /batch request was too large Exceeded max limit of (?<calls>\d+)/i
  ].map(means("refused")),

  // Not a limit: the range ends above the head of the node that was picked (geth, reth).
  ...[/beyond current head/i].map(means("missing")),

  ...[
    // Alchemy, Blast API
    /up to an? (?<blocks>[\d,.]+k?) block range/i,
    /block range should work: \[(?<from>0x[0-9a-f]+), ?(?<to>0x[0-9a-f]+)\]/i,
    // Infura
    /try with this block range \[(?<from>0x[0-9a-f]+), ?(?<to>0x[0-9a-f]+)\]/i,
    /range \d+ exceeds limit of (?<blocks>\d+)/i,
    // reth, LlamaRPC
    /retry with the range (?<from>\d+)-(?<to>\d+)/i,
    /max block range (?:= )?(?<blocks>\d+)/i,
    /range is too large, max is (?<blocks>[\d,.]+k?) blocks/i,
    // QuickNode, 1RPC ("0 - 50 blocks"), BlockPI, Polygon's zkEVM node
    /(?:logs|filter) (?:is|are) limited to (?:an? )?(?:0 - )?(?<blocks>[\d,.]+k?)/i,
    /block range is limited to (?<blocks>[\d,.]+k?)/i,
    // Cloudflare, Polygon's erigon
    /max range: (?<blocks>\d+)/i,
    // PublicNode, Polygon bor
    /maximum block range: (?<blocks>[\d,.]+)/i,
    // dRPC
    /ranges over (?<blocks>[\d,.]+) blocks are not supported/i,
    // Ankr
    /maximum \[from, to\] blocks distance: (?<blocks>\d+)/i,
    // Blast API's paid plans
    /exceeds the range allowed for your plan \(\d+ > (?<blocks>\d+)\)/i,
    // Coinbase
    /limit the query to at most (?<blocks>[\d,.]+) blocks/i,
    // erigon
    /block range exceeds server limit, narrow your filter: (?<blocks>\d+)/i,
    // Tenderly
    /bigger than range limit (?<blocks>\d+)/i,
    // thirdweb
    /number of requested blocks is (?<blocks>\d+)/i,
    // Ankr, Base, Optimism
    /block range (?:is )?too (?:wide|large|high)/i,
    // Chainstack
    /block range limit exceeded/i,
    // geth behind Infura, GetBlock and others
    /returned more than \d+ results/i,
    /query timeout exceeded/i,
    // reth
    /exceeds max results/i,
    // erigon
    /returns too many logs/i,
    // Arbitrum nitro
    /logs matched by query exceeds limit/i,
    // nethermind, whose code others use for rate limits
    /too many logs requested/i,
    /log query timed out/i,
    // Alchemy, of old
    /log response size exceeded/i
  ].map(means("range")),

  // Optimism's and Base's proxy, batches of geth and reth, 1RPC
  ...[/response (?:was )?too large/i, /response size should not/i].map(means("too_large")),

  ...[
    // Infura, Base, Tenderly, Ankr and most others
    /rate.?limit/i,
    /request rate/i,
    /too many requests/i,
    // QuickNode
    /request limit reached/i,
    /credits limited to/i,
    // Alchemy
    /compute units per second/i,
    /capacity limit exceeded/i,
    // Chainstack
    /exceeded the RPS limit/i,
    // dRPC, whose free tier ends so
    /timeout on the free tier/i,
    // Infura, GetBlock, Polygon's gateway
    /request count exceeded/i,
    /quota/i,
    /maximum request limit/i
  ].map(means("rate_limited")),

  ...[
    // geth, Polygon bor, Arbitrum nitro
    /missing trie node/i,
    /historical state .*(?:not |un)available/i,
    /state 0x[0-9a-f]+ is not available/i,
    /state histories haven't been fully indexed/i,
    /pruned history unavailable/i,
    // Optimism before Bedrock
    /no historical RPC/i,
    // nethermind
    /no state available for block/i,
    /MissingTrieNodeException/i,
    // reth
    /state at block #?\d+ is pruned/i,
    /exceeds maximum proof window/i,
    // erigon
    /not available due to pruning/i,
    /data before txNum=\d+ is not available/i,
    // Parity
    /running with state pruning/i,
    // PublicNode
    /archive requests require/i
  ].map(means("state")),

  // A block that the node does not have, or not yet
  ...[/header not found/i, /unknown block/i, /block not found/i].map(means("missing")),

  ...[
    // geth and its kin, reth
    /does not exist.{0,5}is not available/i,
    /method not found/i,
    // nethermind, dRPC
    /method .{0,60}(?:is not available|not supported|unsupported)/i,
    /unsupported method/i,
    // PublicNode, GetBlock
    /not whitelisted/i,
    // Alchemy, QuickNode, Chainstack
    /not (?:included|available) (?:in|on) (?:your|the)[a-z ]{0,30}(?:plan|tier)/i,
    // A node without state overrides, or without the tracer
    /too many arguments/i,
    /invalid tracer/i
  ].map(means("unsupported"))
]

/** EIP-1474's "limit exceeded": of calls for most providers, of results for some. */
const limitExceeded = -32_005

/** Codes that say enough by themselves, where the words do not: JSON-RPC 2.0, EIP-1474 and HTTP's. */
const codes: ReadonlyMap<unknown, RpcReason> = new Map([
  [-32601, "unsupported"],
  [-32004, "unsupported"],
  [limitExceeded, "rate_limited"],
  [429, "rate_limited"]
])

/** "10,000", "2K" or "10.000". */
const count = (text: string): number =>
  Number.parseInt(text.replaceAll(/[,.]/g, ""), 10) * (/k$/i.test(text) ? 1000 : 1)

type Groups = Readonly<Record<string, string | undefined>>

const positive = (limit: number): number | undefined => (Number.isSafeInteger(limit) && limit > 0 ? limit : undefined)

const blocksIn = ({ blocks }: Groups): number | undefined => positive(blocks === undefined ? 0 : count(blocks))

const suggestedIn = ({ from, to }: Groups): number | undefined => positive(Number(to) - Number(from) + 1)

const callsIn = ({ calls }: Groups): number | undefined => positive(Number(calls))

/**
 * What a provider means by an error, in its own words. "refused" when they are not known.
 *
 * @param methods what was called. An unknown limit on logs may be one of results, which smaller parts keep; should it be
 * one of calls after all, the provider is left alone once parts cannot become smaller
 */
export const classifyError = (words: string, code?: unknown, methods = ""): ErrorMeaning => {
  for (const { pattern, reason } of known) {
    const match = pattern.exec(words)
    if (match === null) continue
    const groups: Groups = match.groups ?? {}
    return {
      reason,
      maxBlocks: blocksIn(groups),
      suggestedBlocks: suggestedIn(groups),
      maxCalls: callsIn(groups)
    }
  }
  const isOfLogs = code === limitExceeded && methods.includes("eth_getLogs")
  const reason = isOfLogs ? "range" : (codes.get(code) ?? "refused")
  return { reason, maxBlocks: undefined, suggestedBlocks: undefined, maxCalls: undefined }
}
