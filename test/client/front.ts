import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { request as send } from "undici"
import { httpAgent, listenHere } from "../lib/loopback.ts"

/**
 * The fate of a request: it goes through; the connection is reset before it goes through, or when the answer to it is
 * there; it is never answered; or it is answered here.
 */
export type Fate =
  | "through"
  | "reset before"
  | "reset after"
  | "hang"
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A server in front of tilld, as there may be one: a balancer, a proxy, a bad line. */
export interface Front {
  readonly url: string
  /** The fates of the next requests, one after the other. Everything after them goes through. */
  readonly expect: (...fates: ReadonlyArray<Fate>) => void
  readonly seen: ReadonlyArray<Seen>
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString("utf8")
}

/** Starts a front, until the scope closes. Without a target nothing may go through. */
export const startFront = (target?: { readonly host: string; readonly port: number }) =>
  Effect.gen(function* () {
    const agent = yield* httpAgent
    const seen: Array<Seen> = []
    let fates: ReadonlyArray<Fate> = []

    const pass = async (response: ServerResponse, { body, headers, method, path }: Seen, isCut: boolean) => {
      if (target === undefined) throw new Error("there is nothing behind this front")
      const { connection, "content-length": length, "transfer-encoding": encoding, ...passed } = headers
      const answer = await send(`http://${target.host}:${target.port}${path}`, {
        dispatcher: agent,
        method: method as "GET",
        headers: passed,
        body: body === "" ? null : body
      })
      const text = await answer.body.text()
      if (isCut) response.socket?.resetAndDestroy()
      else response.writeHead(answer.statusCode, answer.headers).end(text)
    }

    const handle = async (request: IncomingMessage, response: ServerResponse) => {
      const { headers, method = "", url: path = "" } = request
      const one = { method, path, headers, body: await bodyOf(request) }
      seen.push(one)
      const [fate = "through", ...rest] = fates
      fates = rest
      if (fate === "reset before") response.socket?.resetAndDestroy()
      else if (fate === "through" || fate === "reset after") await pass(response, one, fate === "reset after")
      else if (fate !== "hang") {
        const text = typeof fate.body === "string" ? fate.body : JSON.stringify(fate.body)
        response.writeHead(fate.status, { "content-type": "application/json", ...fate.headers }).end(text)
      }
    }

    const server = createServer((request, response) => {
      handle(request, response).catch((error) => response.destroy(error))
    })
    const { url } = yield* listenHere(server)
    const front: Front = {
      url,
      seen,
      expect: (...next) => {
        fates = next
      }
    }
    return front
  })
