import { brotliCompressSync, constants } from "node:zlib"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { PageRequest } from "../Http/PageHandler.ts"

/** Whether an Accept-Encoding header has Brotli in its list. */
export const takesBrotli = (acceptEncoding: string): boolean => /(^|,)\s*br\s*(,|$)/.test(acceptEncoding)

/** A tenth of a millisecond for a page, to a third of its size. */
const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }

/** Less is not worth a header. */
const leastBytes = 1_024

/** A page as the client takes it. A page that shows what the request says beside a secret must not be compressed: its length would tell. */
export const compressed = ({ headers }: Pick<PageRequest, "headers">, reply: HttpReply): HttpReply => {
  const isHtml = reply.headers["content-type"]?.startsWith("text/html") === true
  if (!isHtml || reply.rest !== undefined) return reply
  const bytes = reply.bytes === undefined ? Buffer.from(reply.text) : Buffer.concat(reply.bytes)
  if (bytes.length < leastBytes) return reply
  const { etag } = reply.headers
  const varied = { ...reply, headers: { ...reply.headers, vary: "accept-encoding" } }
  if (!takesBrotli(String(headers["accept-encoding"] ?? ""))) return varied
  return {
    ...varied,
    headers: {
      ...varied.headers,
      // Of other bytes (RFC 9110, 8.8.3.3).
      ...(etag === undefined ? {} : { etag: etag.replace(/"$/, '.br"') }),
      "content-encoding": "br"
    },
    text: "",
    bytes: [brotliCompressSync(bytes, fast)]
  }
}
