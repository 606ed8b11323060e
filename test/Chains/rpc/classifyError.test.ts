import { describe, expect, it } from "vitest"
import { classifyError } from "../../../src/Chains/rpc/classifyError.ts"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"

/** Who says it, with which code, what it means, and the blocks that it names as a limit, or suggests. */
type Row = [
  from: string,
  code: number,
  words: string,
  reason: RpcReason,
  maxBlocks?: number | undefined,
  suggestedBlocks?: number
]

const stateRoot = "0x669c5301b4a7abb7d1cd82d98f1c8a0d39e4dc0c3f807086c73e3172eb0c256f"

const ranges: ReadonlyArray<Row> = [
  [
    "Alchemy",
    -32600,
    "You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x123c9b2, 0x123cba5]",
    "range",
    500
  ],
  [
    "Alchemy, by results",
    -32602,
    "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0x133b8a]",
    "range",
    2000
  ],
  [
    "Alchemy, free tier",
    -32600,
    "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x106e0ed, 0x106e0f6]. Upgrade to PAYG for expanded block range.",
    "range",
    10
  ],
  ["Alchemy, a suggestion alone", -32602, "this block range should work: [0x1, 0x7d0]", "range", undefined, 2000],
  ["Alchemy, of old", -32602, "Log response size exceeded. Please reduce query block range.", "range"],
  [
    "Blast API",
    -32600,
    "You can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x18708eb, 0x18708f4]",
    "range",
    10
  ],
  ["Blast API, paid", -32600, "exceeds the range allowed for your plan (5000 > 3000)", "range", 3000],
  [
    "Infura",
    -32005,
    "query returned more than 10000 results. Try with this block range [0x1F61340, 0x1F61363].",
    "range",
    undefined,
    36
  ],
  ["Infura, newer", -32602, "range 1000000 exceeds limit of 10000", "range", 10_000],
  ["Infura, slow", -32005, "query timeout exceeded", "range"],
  ["geth behind a gateway", -32005, "query returned more than 10000 results", "range"],
  ["QuickNode", -32614, "eth_getLogs is limited to a 10,000 range", "range", 10_000],
  ["QuickNode, older", -32602, "eth_getLogs and eth_newFilter are limited to a 10,000 blocks range", "range", 10_000],
  ["1RPC", -32602, "eth_getLogs is limited to 0 - 50 blocks range", "range", 50],
  ["1RPC, by size", -32602, "response size should not greater than 10000000 bytes", "too_large"],
  [
    "BlockPI",
    -32602,
    "eth_getLogs is limited to 1024 block range. Please check the parameter requirements",
    "range",
    1024
  ],
  ["Polygon zkEVM", -32602, "logs are limited to a 10000 block range", "range", 10_000],
  [
    "Xplorer",
    -32005,
    "In eth_getLogs, eth_newFilter, klay_getLogs, and klay_newFilter, the block range is limited to 2000.",
    "range",
    2000
  ],
  [
    "Cloudflare",
    -32047,
    "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800",
    "range",
    800
  ],
  ["PublicNode", -32701, "exceed maximum block range: 50000", "range", 50_000],
  ["dRPC", 35, "ranges over 10000 blocks are not supported on freetier", "range", 10_000],
  ["dRPC, newer", 35, "ranges over 10000 blocks are not supported on free plan", "range", 10_000],
  ["Ankr", -32600, "block range is too wide", "range"],
  ["Ankr, another chain", -32602, "maximum [from, to] blocks distance: 10000", "range", 10_000],
  [
    "Chainstack",
    -32602,
    "Block range limit exceeded. See more details at https://docs.chainstack.com/docs/limits#evm-range-limits",
    "range"
  ],
  ["LlamaRPC", -32603, "eth_getLogs range is too large, max is 1k blocks", "range", 1000],
  ["Coinbase", -32005, "please limit the query to at most 1000 blocks", "range", 1000],
  ["Base", -32000, "block range too large", "range"],
  ["Optimism", -32000, "Block range is too large", "range"],
  ["Optimism's and Base's proxy", -32020, "backend response too large", "too_large"],
  ["jsonrpsee", -32011, "The batch response was too large", "too_large"],
  ["Tenderly", -32602, 'invalid params {"payload":"range 9009594 is bigger than range limit 2000"}', "range", 2000],
  ["thirdweb", -32005, "Log response size exceeded. Maximum allowed number of requested blocks is 1000", "range", 1000],
  ["reth", -32602, "query exceeds max block range 100000", "range", 100_000],
  [
    "reth, by results",
    -32602,
    "query exceeds max results 20000, retry with the range 24383075-24383096",
    "range",
    undefined,
    22
  ],
  ["reth, without a range", -32602, "query exceeds max results 20000", "range"],
  [
    "a scroll geth",
    -32000,
    "block range is larger than max block range, block range = 5120, max block range = 5000",
    "range",
    5000
  ],
  ["erigon", -32000, "query block range exceeds server limit, narrow your filter: 1000", "range", 1000],
  ["erigon, by results", -32000, "query returns too many logs, narrow your filter: 20000", "range"],
  ["Polygon's erigon", -32005, "block range too large, max range: 1000", "range", 1000],
  ["nethermind", -32005, "Too many logs requested. Max logs per response is 20000.", "range"],
  ["Arbitrum nitro", -32000, "logs matched by query exceeds limit of 10000", "range"],
  ["Arbitrum nitro, slow", -32000, "log query timed out", "range"]
]

const rateLimits: ReadonlyArray<Row> = [
  [
    "Alchemy",
    429,
    "Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.",
    "rate_limited"
  ],
  [
    "Alchemy, by month",
    -32600,
    "Monthly capacity limit exceeded. Visit https://dashboard.alchemyapi.io/settings/billing to upgrade your scaling policy for continued service.",
    "rate_limited"
  ],
  ["Infura", -32005, "project ID request rate exceeded", "rate_limited"],
  ["Infura, by project", -32005, "exceeded project rate limit", "rate_limited"],
  ["Infura, by day", -32005, "daily request count exceeded, request rate limited", "rate_limited"],
  [
    "QuickNode",
    -32007,
    "30/second request limit reached - reduce calls per second or upgrade your account at quicknode.com",
    "rate_limited"
  ],
  ["QuickNode, by credits", -32012, "credits limited to 6000/sec", "rate_limited"],
  ["Chainstack", -32005, "You've exceeded the RPS limit available on the current plan.", "rate_limited"],
  ["Base", -32016, "over rate limit", "rate_limited"],
  ["Tenderly", -32005, "rate limit exceeded", "rate_limited"],
  ["dRPC", 30, "Request timeout on the free tier, please upgrade your tier to the paid one", "rate_limited"],
  ["a gateway", -32000, "429 Too Many Requests", "rate_limited"],
  ["Polygon's gateway", -32000, "You have reached maximum request limit", "rate_limited"],
  ["a plan", -32000, "monthly quota exceeded", "rate_limited"],
  ["BNB's nodes", -32005, "limit exceeded", "rate_limited"],
  ["a status in the place of a code", 429, "slow down", "rate_limited"]
]

const states: ReadonlyArray<Row> = [
  [
    "geth",
    -32000,
    "missing trie node ef7df5d88cb1614dc3f143879a653cd90717ee42e967c5fabbcd7505a968f314 (path )",
    "state"
  ],
  [
    "Polygon bor",
    -32000,
    `missing trie node ${stateRoot.slice(2)} (path ) state ${stateRoot} is not available, not found`,
    "state"
  ],
  ["Arbitrum nitro", -32000, `missing trie node ${"0".repeat(64)} (path ) <nil>`, "state"],
  ["geth by paths", -32000, `state ${stateRoot} is not available`, "state"],
  ["geth by paths, tracing", -32000, "historical state not available in path scheme yet", "state"],
  ["geth, tracing", -32000, "required historical state unavailable (reexec=128)", "state"],
  ["geth, indexing", -32000, "state histories haven't been fully indexed yet", "state"],
  ["geth without old blocks", 4444, "pruned history unavailable", "state"],
  ["op-geth", -32000, "no historical RPC is available for this historical (pre-bedrock) execution request", "state"],
  ["nethermind", -32002, `No state available for block 45615500 (${stateRoot})`, "state"],
  [
    "nethermind, by accident",
    -32603,
    `Internal error Nethermind.Trie.MissingTrieNodeException: Node A: P:2 H:${stateRoot} is missing from the DB`,
    "state"
  ],
  ["reth", -32603, "State at block #11052984 is pruned", "state"],
  ["reth, proofs", -32602, "distance to target block exceeds maximum proof window", "state"],
  ["erigon", -32000, "old data not available due to pruning", "state"],
  [
    "erigon 3",
    -32000,
    "state transitaion failed: seek with txNum=1962853355 but data before txNum=2662500000 is not available: blockNum=16999999",
    "state"
  ],
  [
    "parity",
    -32000,
    "This request is not supported because your node is running with state pruning. Run with --pruning=archive.",
    "state"
  ],
  [
    "PublicNode",
    -32602,
    "Archive requests require a personal token. Get one at: https://www.allnodes.com/publicnode",
    "state"
  ]
]

const unsupported: ReadonlyArray<Row> = [
  ["geth", -32601, "the method debug_traceTransaction does not exist/is not available", "unsupported"],
  ["geth under another code", -32000, "the method eth_simulateV1 does not exist/is not available", "unsupported"],
  ["another code", -32000, "Method not found", "unsupported"],
  ["Optimism's and Base's proxy", -32001, "rpc method is not whitelisted", "unsupported"],
  [
    "Alchemy",
    -32600,
    "debug_traceTransaction is not available on the Free tier - upgrade to Pay As You Go, or Enterprise for access.",
    "unsupported"
  ],
  ["a plan", -32000, "The method debug_traceTransaction is not included in your current plan", "unsupported"],
  ["a gateway", -32000, "Unsupported method: trace_block", "unsupported"],
  ["a relay", -32000, "method eth_simulateV1 not supported", "unsupported"],
  ["geth without overrides", -32602, "too many arguments, want at most 2", "unsupported"],
  ["a node with other tracers", -32602, "invalid 2nd argument: options 'tracer': invalid tracer value", "unsupported"],
  ["by its code", -32601, "nope", "unsupported"],
  ["by EIP-1474's code", -32004, "nope", "unsupported"]
]

const others: ReadonlyArray<Row> = [
  ["a node behind", -32602, "block range extends beyond current head block", "missing"],
  ["a node without the block", -32000, "header not found", "missing"],
  ["reth without the block", -32001, "block not found: 0x12", "missing"],
  ["erigon without the block", -32000, "unknown block", "missing"],
  ["words that nobody knows", -32000, "something else", "refused"],
  ["a contract", 3, "execution reverted: too many requests", "refused"],
  ["a contract on nethermind", -32015, "VM execution error. rate limit", "refused"],
  ["a contract by another name", -32000, "VM Exception while processing transaction: revert rate limit", "refused"],
  ["a transaction", -32000, "transaction reverted: missing trie node", "refused"]
]

describe("the error texts of providers", () => {
  it.each<Row>([...ranges, ...rateLimits, ...states, ...unsupported, ...others])(
    "%s (%i): %s",
    (_, code, words, reason, maxBlocks, suggestedBlocks) => {
      expect(classifyError(words, code)).toEqual({ reason, maxBlocks, suggestedBlocks })
    }
  )

  it.each<readonly [from: string, code: number, words: string, maxCalls: number | undefined]>([
    [
      "dRPC and 1RPC",
      31,
      "Batch of more than 3 requests are not allowed on free tier, to use this feature register paid account at drpc.org",
      3
    ],
    [
      "erigon",
      -32600,
      "batch limit 100 exceeded (can increase by --rpc.batch.limit). Requested batch of size: 101",
      100
    ],
    ["jsonrpsee", -32010, "The batch request was too large Exceeded max limit of 50", 50],
    ["geth", -32600, "batch too large", undefined]
  ])("%s (%i) on batches: %s", (_, code, words, maxCalls) => {
    expect(classifyError(words, code)).toEqual({ reason: "refused", maxCalls })
  })

  it("take an unknown -32005 on logs for a limit of results, and a known text for its meaning", () => {
    expect(classifyError("no more", -32005, "eth_getLogs").reason).toBe("range")
    expect(classifyError("no more", -32005, "eth_call, eth_getLogs").reason).toBe("range")
    expect(classifyError("no more", -32005, "eth_call").reason).toBe("rate_limited")
    expect(classifyError("rate limit exceeded", -32005, "eth_getLogs").reason).toBe("rate_limited")
    expect(classifyError("no more", 429, "eth_getLogs").reason).toBe("rate_limited")
  })

  it("take no number for a limit that is not one", () => {
    expect(classifyError("retry with the range 20-10").suggestedBlocks).toBeUndefined()
    expect(classifyError("exceed maximum block range: 0").maxBlocks).toBeUndefined()
    expect(classifyError(`exceed maximum block range: ${"9".repeat(30)}`).maxBlocks).toBeUndefined()
  })
})
