import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect, Redacted } from "effect"
import { Rpc, type RpcClient } from "../../src/Chains/rpc/Rpc.ts"
import { listenHere } from "../lib/loopback.ts"

export interface Call {
  readonly id: number
  readonly method: string
}

/** `isBatch`: the calls came in a list. */
export type Handler = (
  calls: ReadonlyArray<Call>,
  response: ServerResponse,
  request: IncomingMessage,
  isBatch: boolean
) => void

export const key = "s3cr3t-k3y-0123456789"

/** A provider that responds by `handle`, and the number of connections to it. */
export const provider = (handle: Handler) =>
  Effect.suspend(() => {
    let connections = 0
    const server = createServer((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        // As when the time is asked for.
        if (request.method !== "POST") return void response.writeHead(405).end()
        const body: Call | ReadonlyArray<Call> = JSON.parse(Buffer.concat(parts).toString())
        handle([body].flat() as ReadonlyArray<Call>, response, request, Array.isArray(body))
      })
    })
    server.on("connection", () => connections++)
    return Effect.map(listenHere(server), ({ close, url }) => ({
      ...{ url: `${url}/v2/${key}`, connections: () => connections, close }
    }))
  })

export const answering =
  (answers: (calls: ReadonlyArray<Call>) => unknown): Handler =>
  (calls, response, _request, isBatch) => {
    const all = answers(calls)
    const answer = Array.isArray(all) && all.length === 1 && !isBatch ? all[0] : all
    response.setHeader("content-type", "application/json").end(JSON.stringify(answer))
  }

export const results = (calls: ReadonlyArray<Call>) =>
  calls.map(({ id, method }) => ({ jsonrpc: "2.0", id, result: `0x${method.length}` }))

export const clientFor = (url: string) => Effect.map(Rpc, (rpc) => rpc.client(Redacted.make(url)))

export const twoCalls = (client: RpcClient) =>
  client.send([
    { method: "a", params: [] },
    { method: "bb", params: [1] }
  ])
