/**
 * Reads the body of an HTTP response within bounds of bytes, depth and JSON values, so that no provider can exhaust
 * memory or block the event loop: a large body is parsed in slices. Used by the client in Rpc.ts.
 */
import { setImmediate as eventLoopTurn } from "node:timers/promises"
import { JSONParser } from "@streamparser/json"
import { type Excess, type JsonBounds, JsonScan } from "../../lib/JsonScan.ts"
import type { RpcRequest } from "./Rpc.ts"

const KiB = 1024
const MiB = 1024 * KiB

/** The bounds of any response: a block of 10 MiB, as large as Ethereum's may be (EIP-7934), is 20 MB in JSON. */
const most: JsonBounds = { bytes: 24 * MiB, depth: 16, values: 500_000 }
/** Numbers, balances, receipts without logs. */
const small: JsonBounds = { bytes: 64 * KiB, depth: 16, values: 2_000 }
/** A header with its transactions' hashes, or a transaction with as much data as nodes accept. */
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

/** The bounds of the response to a call. */
const boundsOf = ({ method, params }: RpcRequest): JsonBounds => {
  if (method === "eth_getBlockByNumber" || method === "eth_getBlockByHash") return params[1] === true ? most : middle
  return byMethod[method] ?? small
}

/** The bounds of the response to a batch. */
export const boundsOfBatch = (calls: ReadonlyArray<RpcRequest>): JsonBounds => {
  const each = calls.map(boundsOf)
  const all = (of: Excess) => each.reduce((sum, bounds) => sum + bounds[of], 0)
  return {
    bytes: Math.min(all("bytes"), most.bytes),
    depth: Math.max(small.depth, ...each.map(({ depth }) => depth)),
    values: Math.min(all("values"), most.values)
  }
}

/** Bytes up to which a text is parsed at once: in tens of milliseconds at worst, a typical block in one or two. */
const maxAtOnce = 512 * KiB

/** A response exceeds a bound; the rest of it is not read. */
export class ResponseTooLarge extends Error {
  constructor(
    readonly excess: Excess,
    readonly bounds: JsonBounds
  ) {
    super(`more than ${bounds[excess]} ${excess === "depth" ? "levels" : excess}`)
  }
}

/** The value of a JSON text; undefined where it is not JSON. */
const parseText = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Bytes that are parsed in a turn of the event loop: a millisecond or two, and each chain may parse one text. */
const slice = 16 * KiB

/** The same for a large text, with a turn of the event loop after each slice. */
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

/** A body's size, and its value: undefined where it is not JSON. */
interface ResponseBody {
  readonly bytes: number
  readonly value: unknown
}

const textOf = (parts: ReadonlyArray<Uint8Array>): string =>
  Buffer.concat(parts)
    .toString("utf8")
    .replace(/^\uFEFF/, "")

/** Reads a body to its end, or to the first part that exceeds a bound. */
const read = async (body: AsyncIterable<Uint8Array>, bounds: JsonBounds) => {
  const scan = new JsonScan(bounds)
  const parts: Array<Uint8Array> = []
  let bytes = 0
  for await (const part of body) {
    bytes += part.length
    parts.push(part)
    const excess = scan.take(part)
    if (excess !== undefined) return { bytes, parts, excess }
  }
  return { bytes, parts, excess: undefined }
}

/** Reads a body to its end. Throws `ResponseTooLarge` where it exceeds a bound, and the connection's errors. */
export const readResponse = async (body: AsyncIterable<Uint8Array>, bounds: JsonBounds): Promise<ResponseBody> => {
  const { bytes, excess, parts } = await read(body, bounds)
  if (excess !== undefined) throw new ResponseTooLarge(excess, bounds)
  return { bytes, value: bytes > maxAtOnce ? await parseParts(parts) : parseText(textOf(parts)) }
}

/** Reads the start of the body of an error status; `value` is set where this is the whole body, and JSON. */
export const readErrorResponse = async (
  body: AsyncIterable<Uint8Array>
): Promise<ResponseBody & { readonly text: string }> => {
  const { bytes, excess, parts } = await read(body, small)
  const text = textOf(parts)
  return { bytes, text, value: excess === undefined ? parseText(text) : undefined }
}
