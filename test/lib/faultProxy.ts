import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect, FiberSet, Queue } from "effect"
import { Pool } from "undici"
import {
  type Answer,
  answers,
  type Call,
  defaults,
  type FaultName,
  type FaultOptions,
  faultNames,
  providersWords
} from "./faults.ts"
import { listenHere } from "./loopback.ts"

export { type FaultName, type FaultOptions, faultNames, type PassingFault, providersWords } from "./faults.ts"

/** The outcome of one request. */
export interface Exchange {
  readonly methods: ReadonlyArray<string>
  /** Undefined: it was passed on and answered as it should be. */
  readonly fault: FaultName | undefined
}

/** A provider in front of a node, with the faults of real providers. */
export interface FaultProxy {
  readonly url: string
  /** Does this to every request from now on; nothing without a name. */
  readonly set: (fault?: FaultName, options?: Partial<FaultOptions>) => Effect.Effect<void>
  /** Does to each request what the seed says, until the next `set`: the same requests meet the same faults. */
  readonly schedule: (seed: number, options?: Partial<Schedule>) => Effect.Effect<void>
  /** The next request that came, also one that came before. */
  readonly next: Effect.Effect<Exchange>
  /** Waits for a request that comes from now on and to which this is done. */
  readonly meets: (fault: FaultName | undefined) => Effect.Effect<void>
  /** Calls of a method that came so far. */
  readonly count: (method: string) => number
}

export interface Schedule {
  /** Which faults; all unless given. */
  readonly faults: ReadonlyArray<FaultName>
  /** Which part of the requests meets one, 0 to 1. Default 0.3. */
  readonly share: number
}

interface Plan {
  readonly fault: FaultName | undefined
  readonly options: FaultOptions
}

/** Numbers in [0, 1) that follow from the seed alone: mulberry32. */
const numbers = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** What a seed does to request after request. */
export const plansOf = (seed: number, { faults = faultNames, share = 0.3 }: Partial<Schedule> = {}): (() => Plan) => {
  const number = numbers(seed)
  const below = (limit: number) => Math.floor(number() * limit)
  return () => {
    const struck = number() < share
    const fault = faults[below(faults.length)]
    const words = providersWords[below(providersWords.length)] ?? defaults.words
    const options = { ...defaults, words, millis: below(1_000), blocks: 1 + below(4), behind: 1 + below(4) }
    return { fault: struck ? fault : undefined, options }
  }
}

const bodyOf = (request: IncomingMessage) =>
  Effect.promise(async () => {
    const parts: Array<Buffer> = []
    for await (const part of request) parts.push(part as Buffer)
    return Buffer.concat(parts).toString("utf8")
  })

const respond = (
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {}
) => Effect.sync(() => void response.writeHead(status, { "content-type": "application/json", ...headers }).end(text))

/** Passes calls on to the node, as one batch. */
const makeNode = (target: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Pool(target, { connections: 8 })),
      (pool) => Effect.promise(() => pool.destroy())
    ),
    (pool) => (calls: ReadonlyArray<Call>) =>
      Effect.promise(async (signal) => {
        const body = JSON.stringify(calls.map((call) => ({ jsonrpc: "2.0", ...call })))
        const headers = { "content-type": "application/json" }
        const response = await pool.request({ path: "/", method: "POST", headers, body, signal })
        return (await response.body.json()) as ReadonlyArray<Answer>
      })
  )

type Node = Effect.Effect.Success<ReturnType<typeof makeNode>>

const headOf = (node: Node) =>
  Effect.map(node([{ id: 0, method: "eth_blockNumber", params: [] }]), ([answer]) => Number(answer?.result))

/** The calls' answers, as a provider with this fault gives them. */
const answer = Effect.fnUntraced(function* (
  node: Node,
  calls: ReadonlyArray<Call>,
  { fault, options }: Plan,
  known: { readonly headThen: number; readonly request: number }
) {
  const kind = fault !== undefined && fault in answers ? answers[fault as keyof typeof answers] : {}
  const knowledge = { ...known, head: yield* headOf(node) }
  const asked = calls.map((call) => kind.ask?.(call, options, knowledge) ?? call)
  const toAsk = asked.filter((one): one is Call => "method" in one)
  const given = toAsk.length === 0 ? [] : yield* node(toAsk)
  const byId = new Map(given.map((one) => [one.id, one]))
  return asked.map((one, i): object => {
    const call = calls[i] ?? (one as Call)
    const found = "method" in one ? (byId.get(one.id) ?? one) : one
    const error = "result" in found ? kind.refuse?.(found.result, call, options) : undefined
    if (error !== undefined) return { jsonrpc: "2.0", id: call.id, error }
    const result = "result" in found && kind.alter ? { result: kind.alter(found.result, call, options, knowledge) } : {}
    return { jsonrpc: "2.0", ...found, ...result }
  })
})

/** Answers one request with its fault. */
const serve = Effect.fnUntraced(function* (
  node: Node,
  calls: ReadonlyArray<Call> | Call,
  response: ServerResponse,
  plan: Plan,
  known: { readonly headThen: number; readonly request: number }
) {
  const { fault, options } = plan
  if (fault === "hang") return yield* Effect.never
  if (fault === "drop") return yield* Effect.sync(() => void response.destroy())
  if (fault === "tooManyRequests") {
    const error = { code: -32005, message: "Your app has exceeded its compute units per second capacity." }
    const headers = { "retry-after": String(options.retryAfterSeconds) }
    return yield* respond(response, 429, JSON.stringify({ jsonrpc: "2.0", id: null, error }), headers)
  }
  if (fault === "delay") yield* Effect.sleep(options.millis)
  const batch = Array.isArray(calls) ? (calls as ReadonlyArray<Call>) : [calls as Call]
  const given = yield* answer(node, batch, plan, known)
  const text = JSON.stringify(Array.isArray(calls) ? given : given[0])
  yield* respond(response, 200, fault === "truncatedJson" ? text.slice(0, text.length / 2) : text)
})

/** A provider at an address of its own, in front of the node at `target`, until the scope closes. */
export const startFaultProxy = Effect.fn("FaultProxy.start")(function* (target: string) {
  const node = yield* makeNode(target)
  const run = yield* FiberSet.makeRuntime<never>()
  const seen = yield* Queue.unbounded<Exchange>()
  const waiting = new Set<(fault: FaultName | undefined) => void>()
  const counts = new Map<string, number>()
  let plan: () => Plan = () => ({ fault: undefined, options: defaults })
  let headThen = 0
  let request = 0

  const handle = (incoming: IncomingMessage, response: ServerResponse) =>
    Effect.gen(function* () {
      if (incoming.method !== "POST") return yield* respond(response, 405, "")
      const calls = JSON.parse(yield* bodyOf(incoming)) as ReadonlyArray<Call> | Call
      const methods = [calls].flat().map(({ method }) => method)
      for (const method of methods) counts.set(method, (counts.get(method) ?? 0) + 1)
      const now = plan()
      seen.unsafeOffer({ methods, fault: now.fault })
      const known = { headThen, request: request++ }
      for (const notify of waiting) notify(now.fault)
      yield* serve(node, calls, response, now, known)
    })

  const server = createServer((incoming, response) => void run(handle(incoming, response)))
  const { url } = yield* listenHere(server)

  const use = (next: () => Plan) =>
    Effect.map(headOf(node), (head) => {
      headThen = head
      plan = next
    })

  const proxy: FaultProxy = {
    url,
    set: (fault, options = {}) => use(() => ({ fault, options: { ...defaults, ...options } })),
    schedule: (seed, options) => use(plansOf(seed, options)),
    next: Queue.take(seen),
    meets: (fault) =>
      Effect.async<void>((resume) => {
        const notify = (done: FaultName | undefined) => {
          if (done === fault) resume(Effect.void)
        }
        waiting.add(notify)
        return Effect.sync(() => waiting.delete(notify))
      }),
    count: (method) => counts.get(method) ?? 0
  }
  return proxy
})
