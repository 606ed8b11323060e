import { describe, expect, it } from "vitest"
import { classifyError } from "../../../src/Chains/rpc/batchResponse.ts"

const stateRoot = "0x669c5301b4a7abb7d1cd82d98f1c8a0d39e4dc0c3f807086c73e3172eb0c256f"

/** The provider, the code, the meaning with the limit or suggestion that it names, and the message. */
const texts = `
Alchemy | -32600 | range 500 blocks | You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x123c9b2, 0x123cba5]
Alchemy, by results | -32602 | range 2000 blocks | Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0x133b8a]
Alchemy, free tier | -32600 | range 10 blocks | Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x106e0ed, 0x106e0f6]. Upgrade to PAYG for expanded block range.
Alchemy, a suggestion alone | -32602 | range 2000 suggested | this block range should work: [0x1, 0x7d0]
Alchemy, of old | -32602 | range | Log response size exceeded. Please reduce query block range.
Blast API | -32600 | range 10 blocks | You can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x18708eb, 0x18708f4]
Blast API, paid | -32600 | range 3000 blocks | exceeds the range allowed for your plan (5000 > 3000)
Infura | -32005 | range 36 suggested | query returned more than 10000 results. Try with this block range [0x1F61340, 0x1F61363].
Infura, newer | -32602 | range 10000 blocks | range 1000000 exceeds limit of 10000
Infura, slow | -32005 | range | query timeout exceeded
geth behind a gateway | -32005 | range | query returned more than 10000 results
QuickNode | -32614 | range 10000 blocks | eth_getLogs is limited to a 10,000 range
QuickNode, older | -32602 | range 10000 blocks | eth_getLogs and eth_newFilter are limited to a 10,000 blocks range
1RPC | -32602 | range 50 blocks | eth_getLogs is limited to 0 - 50 blocks range
1RPC, by size | -32602 | too_large | response size should not greater than 10000000 bytes
BlockPI | -32602 | range 1024 blocks | eth_getLogs is limited to 1024 block range. Please check the parameter requirements
Polygon zkEVM | -32602 | range 10000 blocks | logs are limited to a 10000 block range
Xplorer | -32005 | range 2000 blocks | In eth_getLogs, eth_newFilter, klay_getLogs, and klay_newFilter, the block range is limited to 2000.
Cloudflare | -32047 | range 800 blocks | Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800
PublicNode | -32701 | range 50000 blocks | exceed maximum block range: 50000
dRPC | 35 | range 10000 blocks | ranges over 10000 blocks are not supported on freetier
dRPC, newer | 35 | range 10000 blocks | ranges over 10000 blocks are not supported on free plan
Ankr | -32600 | range | block range is too wide
Ankr, another chain | -32602 | range 10000 blocks | maximum [from, to] blocks distance: 10000
Chainstack | -32602 | range | Block range limit exceeded. See more details at https://docs.chainstack.com/docs/limits#evm-range-limits
LlamaRPC | -32603 | range 1000 blocks | eth_getLogs range is too large, max is 1k blocks
Coinbase | -32005 | range 1000 blocks | please limit the query to at most 1000 blocks
Base | -32000 | range | block range too large
Optimism | -32000 | range | Block range is too large
Optimism's and Base's proxy | -32020 | too_large | backend response too large
jsonrpsee | -32011 | too_large | The batch response was too large
Tenderly | -32602 | range 2000 blocks | invalid params {"payload":"range 9009594 is bigger than range limit 2000"}
thirdweb | -32005 | range 1000 blocks | Log response size exceeded. Maximum allowed number of requested blocks is 1000
reth | -32602 | range 100000 blocks | query exceeds max block range 100000
reth, by results | -32602 | range 22 suggested | query exceeds max results 20000, retry with the range 24383075-24383096
reth, without a range | -32602 | range | query exceeds max results 20000
a scroll geth | -32000 | range 5000 blocks | block range is larger than max block range, block range = 5120, max block range = 5000
erigon | -32000 | range 1000 blocks | query block range exceeds server limit, narrow your filter: 1000
erigon, by results | -32000 | range | query returns too many logs, narrow your filter: 20000
Polygon's erigon | -32005 | range 1000 blocks | block range too large, max range: 1000
nethermind | -32005 | range | Too many logs requested. Max logs per response is 20000.
Arbitrum nitro | -32000 | range | logs matched by query exceeds limit of 10000
Arbitrum nitro, slow | -32000 | range | log query timed out
Alchemy | 429 | rate_limited | Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.
Alchemy, by month | -32600 | rate_limited | Monthly capacity limit exceeded. Visit https://dashboard.alchemyapi.io/settings/billing to upgrade your scaling policy for continued service.
Infura | -32005 | rate_limited | project ID request rate exceeded
Infura, by project | -32005 | rate_limited | exceeded project rate limit
Infura, by day | -32005 | rate_limited | daily request count exceeded, request rate limited
QuickNode | -32007 | rate_limited | 30/second request limit reached - reduce calls per second or upgrade your account at quicknode.com
QuickNode, by credits | -32012 | rate_limited | credits limited to 6000/sec
Chainstack | -32005 | rate_limited | You've exceeded the RPS limit available on the current plan.
Base | -32016 | rate_limited | over rate limit
Tenderly | -32005 | rate_limited | rate limit exceeded
dRPC | 30 | rate_limited | Request timeout on the free tier, please upgrade your tier to the paid one
a gateway | -32000 | rate_limited | 429 Too Many Requests
Polygon's gateway | -32000 | rate_limited | You have reached maximum request limit
a plan | -32000 | rate_limited | monthly quota exceeded
BNB's nodes | -32005 | rate_limited | limit exceeded
a status in the place of a code | 429 | rate_limited | slow down
geth | -32000 | state | missing trie node ef7df5d88cb1614dc3f143879a653cd90717ee42e967c5fabbcd7505a968f314 (path )
Polygon bor | -32000 | state | missing trie node ${stateRoot.slice(2)} (path ) state ${stateRoot} is not available, not found
Arbitrum nitro | -32000 | state | missing trie node ${"0".repeat(64)} (path ) <nil>
geth by paths | -32000 | state | state ${stateRoot} is not available
geth by paths, tracing | -32000 | state | historical state not available in path scheme yet
geth, tracing | -32000 | state | required historical state unavailable (reexec=128)
geth, indexing | -32000 | state | state histories haven't been fully indexed yet
geth without old blocks | 4444 | state | pruned history unavailable
op-geth | -32000 | state | no historical RPC is available for this historical (pre-bedrock) execution request
nethermind | -32002 | state | No state available for block 45615500 (${stateRoot})
nethermind, by accident | -32603 | state | Internal error Nethermind.Trie.MissingTrieNodeException: Node A: P:2 H:${stateRoot} is missing from the DB
reth | -32603 | state | State at block #11052984 is pruned
reth, proofs | -32602 | state | distance to target block exceeds maximum proof window
erigon | -32000 | state | old data not available due to pruning
erigon 3 | -32000 | state | state transitaion failed: seek with txNum=1962853355 but data before txNum=2662500000 is not available: blockNum=16999999
parity | -32000 | state | This request is not supported because your node is running with state pruning. Run with --pruning=archive.
PublicNode | -32602 | state | Archive requests require a personal token. Get one at: https://www.allnodes.com/publicnode
geth | -32601 | unsupported | the method debug_traceTransaction does not exist/is not available
geth under another code | -32000 | unsupported | the method eth_simulateV1 does not exist/is not available
another code | -32000 | unsupported | Method not found
Optimism's and Base's proxy | -32001 | unsupported | rpc method is not whitelisted
Alchemy | -32600 | unsupported | debug_traceTransaction is not available on the Free tier - upgrade to Pay As You Go, or Enterprise for access.
a plan | -32000 | unsupported | The method debug_traceTransaction is not included in your current plan
a gateway | -32000 | unsupported | Unsupported method: trace_block
a relay | -32000 | unsupported | method eth_simulateV1 not supported
geth without overrides | -32602 | unsupported | too many arguments, want at most 2
a node with other tracers | -32602 | unsupported | invalid 2nd argument: options 'tracer': invalid tracer value
by its code | -32601 | unsupported | nope
by EIP-1474's code | -32004 | unsupported | nope
a node behind | -32602 | missing | block range extends beyond current head block
a node without the block | -32000 | missing | header not found
reth without the block | -32001 | missing | block not found: 0x12
erigon without the block | -32000 | missing | unknown block
geth without the transaction | -32000 | missing | transaction 0x${"a".repeat(64)} not found
reth without the transaction | -32001 | missing | transaction not found
geth without its index yet | -32000 | missing | transaction indexing is in progress
words that nobody knows | -32000 | refused | something else
a contract | 3 | refused | execution reverted: too many requests
a contract on nethermind | -32015 | refused | VM execution error. rate limit
a contract by another name | -32000 | refused | VM Exception while processing transaction: revert rate limit
a transaction | -32000 | refused | transaction reverted: missing trie node
dRPC and 1RPC, batches | 31 | refused 3 calls | Batch of more than 3 requests are not allowed on free tier, to use this feature register paid account at drpc.org
erigon, batches | -32600 | refused 100 calls | batch limit 100 exceeded (can increase by --rpc.batch.limit). Requested batch of size: 101
jsonrpsee, batches | -32010 | refused 50 calls | The batch request was too large Exceeded max limit of 50
geth, batches | -32600 | refused | batch too large
`

describe("the error texts of providers", () => {
  it.each(texts.trim().split("\n"))("%s", (line) => {
    const [, code, meaning = "", words = ""] = line.split(" | ")
    const [reason, count, unit] = meaning.split(" ")
    const found = classifyError(words, Number(code))
    const limits = { blocks: found.maxBlocks, suggested: found.suggestedBlocks, calls: found.maxCalls }
    expect(found.reason).toBe(reason)
    expect(limits).toEqual(unit === undefined ? {} : { [unit]: Number(count) })
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
