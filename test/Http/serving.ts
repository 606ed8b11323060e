import { Effect } from "effect"
import { type Front, serveHttp } from "../../src/Http/listener.ts"
import type { Respond } from "../../src/Http/respond.ts"
import { type Connection, dial } from "../lib/socket.ts"

export const anyPort = { host: "127.0.0.1", port: 0 }

/** A connection to a server of its own. */
export const connected = (respond: Respond, over: Partial<Front> = {}) =>
  Effect.flatMap(serveHttp(respond, anyPort, over), dial)

/** A connection that has sent this. */
export const saying = <E, R>(connection: Effect.Effect<Connection, E, R>, text: string) =>
  Effect.tap(connection, ({ write }) => write(text))

/** The same once everything received matches. */
export const answered = <E, R>(connection: Effect.Effect<Connection, E, R>, text: string, pattern: RegExp) =>
  Effect.tap(saying(connection, text), ({ received }) => received(pattern))

/** Everything received, once the server has closed the connection. */
export const untilClosed = <E, R>(connection: Effect.Effect<Connection, E, R>, text: string) =>
  Effect.flatMap(saying(connection, text), ({ closed }) => closed)

export const get = (path: string, method = "GET") => `${method} ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

/** Responds with the received body. */
export const tell: Respond = (_, body) =>
  Effect.map(body, (received) => ({
    status: 200,
    headers: {},
    text: JSON.stringify({ body: received?.toString() ?? "too large" })
  }))

/** What `tell` says about a request without a body. */
export const empty = /\{"body":""\}$/

export const statuses = (text: string) => Array.from(text.matchAll(/HTTP\/1.1 (\d+)/g), ([, status]) => Number(status))

/** The error of the last response. Its request id is that of the response's header. */
export const lastError = (text: string) => {
  const { requestId, ...error } = JSON.parse(text.slice(text.lastIndexOf("\r\n\r\n"))).error
  const inHeader = text.slice(text.lastIndexOf("HTTP/1.1")).match(/x-request-id: (req_\S+)/)?.[1]
  if (requestId === undefined || requestId !== inHeader) throw new Error(`${requestId} is not ${inHeader}`)
  return error
}
