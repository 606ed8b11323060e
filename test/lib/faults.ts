/** One JSON-RPC call as it came, and its answer as it goes. */
export interface Call {
  readonly id: number | string | null
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}
export interface Answer {
  readonly id: number | string | null
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

const hex = (value: number): string => `0x${value.toString(16)}`
const grouped = (value: number): string => value.toLocaleString("en-US")

/** How providers refuse a range of more than `limit` blocks, in their own words and with their own codes. */
const rangeWords: Readonly<
  Record<string, (limit: number, from: number) => { readonly code: number; readonly message: string }>
> = {
  alchemy: (limit, from) => ({
    code: -32600,
    message:
      `Under the Free tier plan, you can make eth_getLogs requests with up to a ${limit} block range. Based on your ` +
      `parameters, this block range should work: [${hex(from)}, ${hex(from + limit - 1)}]. Upgrade to PAYG for expanded block range.`
  }),
  ankr: () => ({ code: -32600, message: "block range is too wide" }),
  drpc: (limit) => ({ code: 35, message: `ranges over ${limit} blocks are not supported on freetier` }),
  infura: (limit) => ({ code: -32602, message: `range 1000000 exceeds limit of ${limit}` }),
  publicnode: (limit) => ({ code: -32701, message: `exceed maximum block range: ${limit}` }),
  quicknode: (limit) => ({ code: -32614, message: `eth_getLogs is limited to a ${grouped(limit)} range` })
}
export type RangeWords = keyof typeof rangeWords
export const providersWords: ReadonlyArray<RangeWords> = Object.keys(rangeWords)

/** The parameters of a fault. Each has a default. */
export interface FaultOptions {
  /** `delay`: before the answer. */
  readonly millis: number
  /** `tooManyRequests`: what Retry-After says. */
  readonly retryAfterSeconds: number
  /** `rangeLimit`: blocks, and who says so. */
  readonly blocks: number
  readonly words: RangeWords
  /** `logLimit`: the most in one answer. */
  readonly logs: number
  /** `balancer`: how far every other backend is behind. */
  readonly behind: number
  /** `prunedState`: blocks behind the head whose state is kept. */
  readonly stateDepth: number
}

export const defaults: FaultOptions = {
  millis: 300,
  retryAfterSeconds: 2,
  blocks: 2,
  words: "alchemy",
  logs: 1,
  behind: 2,
  stateDepth: 2
}

/** Faults of the connection, which change no answer. */
export const connectionFaults = ["delay", "hang", "drop", "tooManyRequests", "truncatedJson"] as const
/** Faults of what is answered. */
export const answerFaults = [
  "rangeLimit",
  "logLimit",
  "staleHead",
  "balancer",
  "emptyLogs",
  "partialLogs",
  "wrongHash",
  "wrongChain",
  "prunedState"
] as const
export const faultNames = [...connectionFaults, ...answerFaults] as const
export type PassingFault = (typeof faultNames)[number]
/** `noSimulation`: a provider that lacks eth_simulateV1, which is no fault that comes and goes. */
export type FaultName = PassingFault | "noSimulation"

/** What a node of the balancer knows: nothing above `head`. */
interface Knowledge {
  /** The chain's head now. */
  readonly head: number
  /** The head when the fault was switched on. */
  readonly headThen: number
  /** How many requests there were before this one. */
  readonly request: number
}

/** A call is asked differently, or answered without being asked; then its answer is altered. */
interface AnswerFault {
  readonly ask?: (call: Call, options: FaultOptions, known: Knowledge) => Call | Answer
  /** Given instead of the answer. */
  readonly refuse?: (result: unknown, call: Call, options: FaultOptions) => Answer["error"] | undefined
  readonly alter?: (result: unknown, call: Call, options: FaultOptions, known: Knowledge) => unknown
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Where a call names the block whose state it asks for. */
const stateParameter: Readonly<Record<string, number>> = {
  eth_getBalance: 1,
  eth_getTransactionCount: 1,
  eth_getCode: 1,
  eth_call: 1,
  eth_getStorageAt: 2,
  eth_getBlockByNumber: 0
}

const numberOf = (tag: unknown, head: number): number | undefined => {
  if (tag === undefined || tag === "latest" || tag === "pending") return head
  if (tag === "earliest") return 0
  return typeof tag === "string" && /^0x[0-9a-f]+$/i.test(tag) ? Number(tag) : undefined
}

const blockOf = (value: unknown): number | undefined => {
  const number = isRecord(value) ? (value.blockNumber ?? value.number) : undefined
  return typeof number === "string" ? Number(number) : undefined
}

/** The call as a node asks itself whose newest block is `head`. */
const askAt = (call: Call, head: number): Call => {
  const at = stateParameter[call.method]
  const tag = at === undefined ? undefined : (call.params[at] ?? "latest")
  return at !== undefined && (tag === "latest" || tag === "pending")
    ? { ...call, params: [...call.params.slice(0, at), hex(head), ...call.params.slice(at + 1)] }
    : call
}

/** The part of a response that a node with the newest block `head` knows. */
const knownAt = (result: unknown, call: Call, head: number): unknown => {
  if (call.method === "eth_blockNumber") return hex(head)
  if (Array.isArray(result)) return result.filter((one) => (blockOf(one) ?? 0) <= head)
  return (blockOf(result) ?? 0) > head ? null : result
}

const lagging = (headOf: (options: FaultOptions, known: Knowledge) => number): AnswerFault => ({
  ask: (call, options, known) => askAt(call, headOf(options, known)),
  alter: (result, call, options, known) => knownAt(result, call, headOf(options, known))
})

/** Another hash, the same for the same one. */
const otherHash = (hash: unknown): unknown =>
  typeof hash === "string" ? hash.replace(/.$/, (last) => (last === "0" ? "1" : "0")) : hash

const ofLogs =
  (alter: (logs: ReadonlyArray<unknown>) => ReadonlyArray<unknown>) =>
  (result: unknown, { method }: Call): unknown =>
    method === "eth_getLogs" && Array.isArray(result) ? alter(result) : result

export const answers: Readonly<Record<Exclude<FaultName, (typeof connectionFaults)[number]>, AnswerFault>> = {
  noSimulation: {
    ask: (call) =>
      call.method === "eth_simulateV1"
        ? { id: call.id, error: { code: -32601, message: "the method eth_simulateV1 does not exist/is not available" } }
        : call
  },
  rangeLimit: {
    ask: (call, { blocks, words }, { head }) => {
      const [filter] = call.params
      if (call.method !== "eth_getLogs" || !isRecord(filter)) return call
      const from = numberOf(filter.fromBlock, head) ?? 0
      const error = (numberOf(filter.toBlock, head) ?? head) - from + 1 > blocks && rangeWords[words]?.(blocks, from)
      return error ? { id: call.id, error } : call
    }
  },
  logLimit: {
    refuse: (result, { method }, { logs }) =>
      method === "eth_getLogs" && Array.isArray(result) && result.length > logs
        ? { code: -32_005, message: `Too many logs requested. Max logs per response is ${logs}.` }
        : undefined
  },
  staleHead: lagging((_, { headThen }) => headThen),
  balancer: lagging(({ behind }, { head, request }) => (request % 2 === 0 ? head : Math.max(0, head - behind))),
  emptyLogs: { alter: ofLogs(() => []) },
  partialLogs: { alter: ofLogs((logs) => logs.slice(0, -1)) },
  wrongHash: {
    alter: (result, { method }) =>
      method === "eth_getBlockByNumber" && isRecord(result) ? { ...result, hash: otherHash(result.hash) } : result
  },
  wrongChain: { alter: (result, { method }) => (method === "eth_chainId" ? "0x539" : result) },
  prunedState: {
    ask: (call, { stateDepth }, { head }) => {
      const at = call.method === "eth_getBlockByNumber" ? undefined : stateParameter[call.method]
      const number = at === undefined ? undefined : numberOf(call.params[at], head)
      // As geth says it. A block named by its hash is taken for an old one.
      return at === undefined || (number !== undefined && number >= head - stateDepth)
        ? call
        : {
            id: call.id,
            error: { code: -32000, message: `missing trie node ${"5".repeat(64)} (path ) state is not available` }
          }
    }
  }
}
