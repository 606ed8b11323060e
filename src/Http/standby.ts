/** What a node answers while another one works: that it lives, that it is not ready, and to everything else a 503. */
import { Effect } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { errorReply, type HttpReply } from "./HttpReply.ts"
import type { Respond } from "./respond.ts"

/** As long as the lease of a node that is lost lasts. */
const retryAfter = "5"

const reply = (status: number, body: object): HttpReply => ({ status, headers: {}, text: JSON.stringify(body) })

/** @param reason why this node does not work, as of now */
export const standbyRespond =
  (reason: () => string): Respond =>
  ({ url = "" }, _, requestId) =>
    Effect.sync(() => {
      const [path] = url.split("?")
      if (path === "/healthz") return reply(200, { alive: true })
      if (path === "/readyz") return reply(503, { ready: false, reason: reason() })
      const message = `This node is a standby: ask the proxy in front of all nodes, or try again (${reason()}).`
      return errorReply(
        new ApiError({ code: "STORE_UNAVAILABLE", message, headers: { "retry-after": retryAfter } }),
        requestId
      )
    })
