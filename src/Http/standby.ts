/** What a node answers while another one works: that it lives, that it is not ready, and to everything else a 503. */
import { Effect } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { errorReply, type HttpReply } from "./HttpReply.ts"
import type { Respond } from "./respond.ts"

/** As long as the lease of a node that is lost lasts. */
const retryAfter = "5"

const reply = (status: number, body: object): HttpReply => ({ status, headers: {}, text: JSON.stringify(body) })

/** The one metric of a node that waits, which the node that works has too. */
export const activeNode = {
  name: "tilld_node_active",
  help: "Whether this node works (1), or waits as a standby (0). Only with PostgreSQL."
}

const metricsOf = (node: string): HttpReply => ({
  status: 200,
  headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
  text: `# HELP ${activeNode.name} ${activeNode.help}\n# TYPE ${activeNode.name} gauge\n${activeNode.name}{node="${node}"} 0\n`
})

/**
 * @param reason why this node does not work, as of now
 * @param node its name, on the operator's listener
 */
export const standbyRespond =
  (reason: () => string, node?: string): Respond =>
  ({ url = "" }, _, requestId) =>
    Effect.sync(() => {
      const [path] = url.split("?")
      if (path === "/healthz") return reply(200, { alive: true })
      if (path === "/readyz") return reply(503, { ready: false, reason: reason() })
      if (path === "/metrics" && node !== undefined) return metricsOf(node)
      const message = `This node is a standby: ask the proxy in front of all nodes, or try again (${reason()}).`
      return errorReply(
        new ApiError({ code: "STORE_UNAVAILABLE", message, headers: { "retry-after": retryAfter } }),
        requestId
      )
    })
