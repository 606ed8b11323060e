import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"
import { request as send } from "undici"

interface Call {
  readonly id: unknown
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

/** What a provider says in place of the chain's result; the result itself where it does not lie of this. */
export type Lie = (call: Call, result: unknown) => unknown

/** A provider in front of a node that gives other results, while it lies. */
export const startLyingProvider = Effect.fnUntraced(function* (target: string) {
  let lie: Lie | undefined
  const answered = async (call: Call) => {
    const init = {
      method: "POST" as const,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call)
    }
    const reply = (await (await send(target, init)).body.json()) as Record<string, unknown>
    if (lie === undefined) return reply
    const result = lie(call, reply.result)
    return result === reply.result ? reply : { jsonrpc: "2.0", id: call.id, result }
  }
  const server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request
      .on("data", (part) => parts.push(part))
      .on("end", async () => {
        const asked = JSON.parse(Buffer.concat(parts).toString()) as Call | ReadonlyArray<Call>
        const replies = await Promise.all([asked].flat().map((call) => answered(call as Call)))
        response.setHeader("content-type", "application/json")
        response.end(JSON.stringify(Array.isArray(asked) ? replies : replies[0]))
      })
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => void server.close().closeAllConnections())
  )
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    tell: (next?: Lie) =>
      Effect.sync(() => {
        lie = next
      })
  }
})
