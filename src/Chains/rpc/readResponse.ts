import { setImmediate as eventLoopTurn } from "node:timers/promises"
import { JSONParser } from "@streamparser/json"
import { type Excess, type JsonBounds, JsonScan } from "../../Domain/JsonScan.ts"
import type { RpcRequest } from "./Rpc.ts"

const KiB = 1024
const MiB = 1024 * KiB

/** The most that any answer may be: a block of 10 MiB, as large as Ethereum's may be (EIP-7934), is 20 MB in JSON. */
const most: JsonBounds = { bytes: 24 * MiB, depth: 16, values: 500_000 }
/** Numbers, balances, receipts without logs. */
const small: JsonBounds = { bytes: 64 * KiB, depth: 16, values: 2_000 }
/** A header has its transactions' hashes; a transaction as many bytes of data as nodes take. */
const middle: JsonBounds = { bytes: 2 * MiB, depth: 16, values: 50_000 }

const byMethod: Readonly<Record<string, JsonBounds>> = {
  eth_getTransactionByHash: middle,
  eth_call: middle,
  eth_getLogs: { ...most, bytes: 16 * MiB },
  eth_getTransactionReceipt: { ...most, bytes: 16 * MiB },
  eth_getBlockReceipts: most,
  // Calls nest 1,024 deep, and each is an object in a list.
  debug_traceTransaction: { ...most, depth: 2_100 },
  eth_simulateV1: most
}

/** What a provider may answer to a call. */
const boundsOf = ({ method, params }: RpcRequest): JsonBounds => {
  if (method === "eth_getBlockByNumber" || method === "eth_getBlockByHash") return params[1] === true ? most : middle
  return byMethod[method] ?? small
}

/** What a provider may answer to a batch. */
export const boundsOfBatch = (calls: ReadonlyArray<RpcRequest>): JsonBounds => {
  const each = calls.map(boundsOf)
  const all = (of: Excess) => each.reduce((sum, bounds) => sum + bounds[of], 0)
  return {
    bytes: Math.min(all("bytes"), most.bytes),
    depth: Math.max(small.depth, ...each.map(({ depth }) => depth)),
    values: Math.min(all("values"), most.values)
  }
}

/** Up to this size a text is parsed at once: the worst takes some tens of milliseconds, and a usual block one or two. */
const atOnce = 512 * KiB

/** A text passes a bound; what is left of it is not read. */
export class ResponseTooLarge extends Error {
  constructor(
    readonly excess: Excess,
    readonly bounds: JsonBounds
  ) {
    super(`more than ${bounds[excess]} ${excess === "depth" ? "levels" : excess}`)
  }
}

/** A JSON value, or undefined where the text is none. */
const parseText = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Bytes that a turn of the event loop parses of one text: a millisecond or two, and every chain may have its own. */
const slice = 16 * KiB

/** The same for a large one, with a turn of the event loop after each slice. */
const parseParts = async (parts: ReadonlyArray<Uint8Array>): Promise<unknown> => {
  let value: unknown
  const parser = new JSONParser({ paths: ["$"], keepStack: false })
  parser.onValue = (parsed) => {
    value = parsed.value
  }
  try {
    for (const part of parts) {
      for (let at = 0; at < part.length; at += slice) {
        parser.write(part.subarray(at, at + slice))
        await eventLoopTurn()
      }
    }
    if (!parser.isEnded) parser.end()
  } catch {
    return undefined
  }
  return value
}

/** An answer, and its value: undefined where it is no JSON. */
export interface ResponseBody {
  readonly bytes: number
  readonly value: unknown
}

const textOf = (parts: ReadonlyArray<Uint8Array>): string =>
  Buffer.concat(parts)
    .toString("utf8")
    .replace(/^\uFEFF/, "")

/**
 * Reads a body to its end within the bounds, part by part; fails with `TooMuch` where it passes one, and with the
 * connection's error where that breaks.
 */
export const readResponse = async (body: AsyncIterable<Uint8Array>, bounds: JsonBounds): Promise<ResponseBody> => {
  const scan = new JsonScan(bounds)
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const part of body) {
    const excess = scan.take(part)
    if (excess !== undefined) throw new ResponseTooLarge(excess, bounds)
    bytes += part.length
    parts.push(part)
  }
  return { bytes, value: bytes > atOnce ? await parseParts(parts) : parseText(textOf(parts)) }
}

/** The start of a body that is no good answer by its status, and the value where that is all of it, and JSON. */
export const readErrorResponse = async (
  body: AsyncIterable<Uint8Array>
): Promise<ResponseBody & { readonly text: string }> => {
  const scan = new JsonScan(small)
  const parts: Array<Uint8Array> = []
  let bytes = 0
  let excess: Excess | undefined
  for await (const part of body) {
    bytes += part.length
    parts.push(part)
    excess = scan.take(part)
    if (excess !== undefined) break
  }
  const text = textOf(parts)
  return { bytes, text, value: excess === undefined ? parseText(text) : undefined }
}
