import type { ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import type { Dice } from "../../sim/Dice.ts"

/** How an answer comes: where it ends, what its head says, and the pieces it comes in. */
export type Manner =
  | { readonly is: "whole"; readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** As it stands, with no head of ours; then the connection ends. */
  | { readonly is: "raw"; readonly head: string }
  /** Ends before it is complete. */
  | { readonly is: "cut"; readonly at: number }
  /** Goes on and on: so many pieces, each after so many milliseconds. */
  | { readonly is: "dripping"; readonly pieces: number; readonly millis: number }
  /** Says nothing more from this byte on. */
  | { readonly is: "hanging"; readonly at: number }
  /** In so many chunks. */
  | { readonly is: "chunked"; readonly chunks: number }

const plain = { "content-type": "application/json" }
const whole = (status = 200, headers: Readonly<Record<string, string>> = {}): Manner => ({
  is: "whole",
  status,
  headers: { ...plain, ...headers }
})

/** As a good server sends it. */
export const properly = whole()

const statuses = [201, 202, 204, 206, 226, 299, 300, 301, 302, 304, 307, 308, 400, 401, 402, 403, 404, 405, 408, 413]
const more = [418, 429, 429, 429, 431, 451, 499, 500, 501, 502, 503, 503, 504, 520, 529, 599, 999]
const retryAfter = ["0", "1", "30", "-1", "1e9", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "soon", ""]

const heads = [
  "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
  "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\n",
  "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n",
  "HTTP/1.1 200 OK\r\n\r\n",
  "HTTP/1.0 200 OK\r\n\r\n",
  "HTTP/1.1 000 \r\n\r\n",
  "HTTP/1.1 2000 OK\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nlink: </>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  "HTTP/2 200\r\n\r\n",
  `HTTP/1.1 200 OK\r\nx: ${"a".repeat(20_000)}\r\n\r\n`,
  `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(3_000)}\r\n`,
  "HTTP/1.1 200 OK\r\nx\u0000y: \u0001\r\n\r\n",
  "\u0016\u0003\u0001\u0002\u0000\u0001",
  "SSH-2.0-OpenSSH_9.6\r\n",
  ""
]

/** Whatever can go wrong between two who speak HTTP. */
export const fault = (dice: Dice, body: Buffer): readonly [manner: Manner, body: Buffer] => {
  const at = dice.below(body.length + 1)
  switch (dice.below(14)) {
    case 0:
    case 1:
    case 2: {
      const status = dice.pick([...statuses, ...more])
      const page = dice.pick([body, body, Buffer.alloc(0), Buffer.from("<html>".repeat(dice.pick([1, 20_000])))])
      const wait = dice.chance(0.5) ? { "retry-after": dice.pick(retryAfter) } : {}
      return [whole(status, status < 400 && status >= 300 ? { location: "http://127.0.0.1:1/" } : wait), page]
    }
    case 3:
      return [whole(200, { "content-length": String(body.length + 1 + dice.below(100)) }), body]
    case 4:
      return [whole(200, { "content-length": String(Math.max(0, body.length - 1 - dice.below(20))) }), body]
    case 5:
      return [whole(200, { "content-encoding": dice.pick(["gzip", "br", "deflate", "identity", "x"]) }), body]
    case 6:
      return [whole(200, dice.chance(0.5) ? { "content-encoding": "gzip" } : {}), gzipSync(body)]
    case 7:
      return [whole(dice.pick([200, 204, 304, 503])), Buffer.alloc(0)]
    case 8:
      return [{ is: "cut", at }, body]
    case 9:
      return [{ is: "dripping", pieces: 1 + dice.below(6), millis: dice.pick([100, 700, 2_000]) }, body]
    case 10:
      return [{ is: "hanging", at: dice.pick([0, 0, at, body.length]) }, body]
    case 11:
      return [{ is: "chunked", chunks: 1 + dice.below(40) }, body]
    default:
      return [{ is: "raw", head: dice.pick(heads) }, body]
  }
}

/** The time that a responder needs: the response is under way except while it waits. */
export interface Pause {
  /** Waits for so many milliseconds of the daemon's time. */
  readonly sleep: (millis: number) => Promise<void>
  /** Says nothing more. */
  readonly forever: () => Promise<void>
}

const pieceOf = (body: Buffer, i: number, count: number): Buffer =>
  body.subarray(Math.floor((body.length * i) / count), Math.floor((body.length * (i + 1)) / count))

const written = (response: ServerResponse, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => {
    if (response.destroyed) return resolve()
    response.once("close", resolve)
    response.write(bytes, () => resolve())
  })

/** Sends an answer. */
export const send = async (response: ServerResponse, manner: Manner, body: Buffer, pause: Pause): Promise<void> => {
  const { socket } = response
  switch (manner.is) {
    case "whole": {
      const length = manner.headers["content-length"]
      response.writeHead(manner.status, { "content-length": String(body.length), ...manner.headers }).end(body)
      return Number(length ?? 0) > body.length ? pause.forever() : undefined
    }
    case "raw":
      socket?.end(Buffer.concat([Buffer.from(manner.head, "latin1"), body]))
      return
    case "cut":
      response.writeHead(200, { ...plain, "content-length": String(body.length) })
      response.flushHeaders()
      if (manner.at > 0) await written(response, body.subarray(0, manner.at))
      response.destroy()
      return
    case "chunked":
      response.writeHead(200, plain)
      for (let i = 0; i < manner.chunks; i++) response.write(pieceOf(body, i, manner.chunks))
      response.end()
      return
    case "hanging":
      response.writeHead(200, { ...plain, "content-length": String(body.length + 1) })
      if (manner.at > 0) await written(response, body.subarray(0, manner.at))
      return pause.forever()
    case "dripping":
      response.writeHead(200, plain)
      for (let i = 0; i < manner.pieces; i++) {
        await written(response, pieceOf(body, i, manner.pieces))
        await pause.sleep(manner.millis)
      }
      response.end()
      return
  }
}
