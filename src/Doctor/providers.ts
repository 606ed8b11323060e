import { Array as Arr, Clock, Duration, Effect, Either, Redacted } from "effect"
import { checkIdentity } from "../Chains/providers/chainIdentity.ts"
import {
  balanceAt,
  balancesByMulticall,
  balancesByOverride,
  simulateBlock,
  traceTransaction
} from "../Chains/rpc/balanceMethods.ts"
import {
  type BlockHeader,
  type Call,
  getChainId,
  getHead,
  getLogs,
  getTransactionHashes,
  sendBatch,
  transferTopic
} from "../Chains/rpc/methods.ts"
import { Rpc, type RpcClient } from "../Chains/rpc/Rpc.ts"
import type { RpcError } from "../Chains/rpc/RpcError.ts"
import { splitRemedy } from "../Domain/ApiError.ts"
import { networkKey } from "../Domain/Chain.ts"
import type { ChainSettings } from "../Settings.ts"
import { type Finding, fail, failedCall, ok, warn } from "./Finding.ts"

/** Milliseconds that a fast provider takes at most. */
const usualLatency = 1_000
/** Blocks back at which a balance is read, and how many back balance reconciliation needs it. */
const depths = [10, 128, 1_000, 100_000] as const
const usefulDepth = 128
/** Block ranges tried with eth_getLogs, and the one that catches up in reasonable time. */
const ranges = [10, 100, 1_000, 2_000, 10_000] as const
const usefulRange = 100
/** Calls in the longest batches that are sent. */
const longestBatch = 100
/** Blocks searched for a transaction to trace. */
const searched = 5

/** An address without a history. */
const unused = "0x00000000000000000000000000000000000dea10"

/** A usable provider, and its head. */
export interface Seen {
  readonly client: RpcClient
  readonly head: BlockHeader
  /** By how much that was ahead of this machine's clock when it was read. */
  readonly headAheadSeconds: number
}

const works = <A>(client: RpcClient, call: Call<A>) => Effect.isSuccess(sendBatch(client, [call]))

/** Whether it serves traces; undefined where there was no transaction to trace. */
const traces = Effect.fn("Doctor.traces")(function* (client: RpcClient, head: BlockHeader) {
  for (let number = head.number; number > Math.max(0, head.number - searched); number--) {
    const [[hash]] = yield* sendBatch(client, [getTransactionHashes(number)])
    if (hash !== undefined) return yield* works(client, traceTransaction(hash))
  }
  return undefined
})

const capabilities = Effect.fn("Doctor.capabilities")(function* (name: string, { client, head }: Seen) {
  const override = yield* works(client, balancesByOverride([unused], head))
  const multicall = yield* works(client, balancesByMulticall([unused], head))
  const trace = yield* traces(client, head)
  const simulate = yield* works(client, simulateBlock(head, []))
  const shown = (what: string, able: boolean | undefined) =>
    `${what} ${able === undefined ? "not tried, no transaction found" : able ? "yes" : "no"}`
  const finding = [
    shown("state override", override),
    shown("Multicall3", multicall),
    shown("traces", trace),
    shown("eth_simulateV1", simulate)
  ].join(", ")
  if (!override && !multicall) {
    return warn(name, finding, "each balance is a call of its own here: use a provider that takes state overrides")
  }
  return trace === false && !simulate
    ? warn(
        name,
        finding,
        "coins that come from inside a contract may stay unattributed: add a provider with debug_traceTransaction or eth_simulateV1"
      )
    : ok(name, finding)
})

/** The largest of `sizes`, ascending, that succeeds; and why the next one fails. */
const largest = Effect.fnUntraced(function* (
  sizes: ReadonlyArray<number>,
  attempt: (size: number) => Effect.Effect<unknown, RpcError>
) {
  let passed = 0
  for (const size of sizes) {
    const tried = yield* Effect.either(attempt(size))
    if (Either.isLeft(tried)) return { passed, refused: { size, error: tried.left } }
    passed = size
  }
  return { passed, refused: undefined }
})

const stateDepth = Effect.fn("Doctor.stateDepth")(function* (name: string, { client, head }: Seen) {
  const sizes = depths.filter((depth) => depth <= head.number)
  const { passed, refused } = yield* largest(sizes, (depth) =>
    sendBatch(client, [balanceAt(unused, head.number - depth)])
  )
  const limit = refused === undefined ? "" : `, and not ${refused.size} blocks back (${refused.error.reason})`
  const finding = `state of ${passed} blocks back${limit}`
  return refused !== undefined && passed < usefulDepth
    ? warn(
        name,
        finding,
        `coins from inside contracts are found by asking ${usefulDepth} blocks back: use another provider`
      )
    : ok(name, finding)
})

const logRange = Effect.fn("Doctor.logRange")(function* (name: string, { client, head }: Seen, chain: ChainSettings) {
  const address = chain.tokens[0]?.address ?? unused
  const topics = [transferTopic, null, `0x${unused.slice(2).padStart(64, "0")}`]
  const sizes = ranges.filter((range) => range <= head.number)
  const { passed, refused } = yield* largest(sizes, (range) =>
    sendBatch(client, [getLogs(head.number - range + 1, head.number, { address: [address], topics })])
  )
  if (refused === undefined) return ok(name, `logs of ${passed} blocks in one call`)
  const { maxBlocks, reason } = refused.error
  const named = maxBlocks === undefined ? "" : `; it names ${maxBlocks} as its limit`
  const finding = `logs of ${passed} blocks in one call, and not of ${refused.size} (${reason})${named}`
  return Math.max(passed, maxBlocks ?? 0) < usefulRange
    ? warn(name, finding, "catching up after an interruption takes very long: use a provider with a wider range")
    : ok(name, finding)
})

/** Where the provider takes shorter batches than those that are sent: how long, and what that costs. */
const batches = Effect.fn("Doctor.batches")(function* (
  name: string,
  { client }: Seen,
  { pollInterval }: ChainSettings
) {
  if (client.batchLimit === undefined) return []
  yield* Effect.ignore(client.send(Arr.replicate(getChainId, longestBatch)))
  const most = yield* client.batchLimit
  if (most >= longestBatch) return []
  if (most > 1) return [ok(name, `it takes ${most} calls in a batch: long reads take more requests`)]
  // Each look and each read are two calls.
  const looks = Duration.toMillis("1 day") / Math.max(1, Duration.toMillis(pollInterval))
  const finding = `it takes no batches: up to ${Math.round(2 * looks).toLocaleString("en-US")} requests more a day, one for each call, while payments are open`
  return [warn(name, finding, "use one that takes batches, or raise poll_interval")]
})

interface Examined {
  readonly seen: Seen | undefined
  readonly findings: ReadonlyArray<Finding>
}

const unusable = (finding: Finding): Examined => ({ seen: undefined, findings: [finding] })

const examineProvider = Effect.fn("Doctor.provider")(
  function* (name: string, chain: ChainSettings, client: RpcClient) {
    const { chainId, knownBlocks } = chain
    const known = yield* checkIdentity(chain, chainId, knownBlocks, client)
    const asked = yield* Clock.currentTimeMillis
    const [head] = yield* sendBatch(client, [getHead])
    const now = yield* Clock.currentTimeMillis
    const [latency, headAheadSeconds] = [now - asked, head.time - now / 1000]
    const seen: Seen = { client, head, headAheadSeconds }
    const finding = `chain ${chainId}, head ${head.number}, responds in ${latency} ms`
    const reached =
      latency < usualLatency
        ? ok(name, finding)
        : warn(name, finding, "it is slow: use one that is nearer or less busy")
    const findings = [
      reached,
      ...(known.length > 0 || knownBlocks.length === 0
        ? []
        : [
            warn(
              `${name} blocks`,
              "it has no old block: only the chain id identifies its chain",
              "add one that keeps them"
            )
          ]),
      yield* capabilities(`${name} capabilities`, seen),
      yield* stateDepth(`${name} state`, seen),
      yield* logRange(`${name} logs`, seen, chain),
      ...(yield* batches(`${name} batches`, seen, chain))
    ]
    const examined: Examined = { seen, findings }
    return examined
  },
  (effect, name) =>
    Effect.catchTags(effect, {
      RpcError: (error) =>
        Effect.succeed(unusable(failedCall(name, error, "check its URL in rpc_urls, its plan and its limits"))),
      WrongChain: ({ message }) => {
        const { remedy, wrong } = splitRemedy(message)
        return Effect.succeed(unusable(fail(name, wrong, remedy)))
      }
    })
)

/** Checks each provider of a chain. The other checks of the chain use the first usable one. */
export const examineProviders = Effect.fn("Doctor.providers")(function* (chain: ChainSettings) {
  const rpc = yield* Rpc
  const key = networkKey(chain)
  const found = yield* Effect.forEach(
    chain.rpcUrls,
    (url) => {
      const client = rpc.client(Redacted.make(Redacted.value(url)))
      return examineProvider(`${key} ${client.host}`, chain, client)
    },
    { concurrency: "unbounded" }
  )
  return {
    usable: found.flatMap(({ seen }) => (seen === undefined ? [] : [seen])),
    findings: found.flatMap(({ findings }) => findings)
  }
})
