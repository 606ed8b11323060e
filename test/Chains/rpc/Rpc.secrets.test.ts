import { expect, it } from "@effect/vitest"
import { Cause, Effect, Option, Redacted } from "effect"
import { Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import { key, provider } from "../httpNode.ts"

it.scopedLive(
  "no part of a provider's URL that may be a key is shown, even where the provider's error contains it",
  () =>
    Effect.gen(function* () {
      const secrets = [key, "the-user", "the-password", "key-in-query"]
      const asked: Array<string | undefined> = []
      const { url } = yield* provider((_, response, request) => {
        asked.push(request.url)
        response.writeHead(401).end(`unknown: ${secrets.join(" ")} ${"x".repeat(1000)}`)
      })
      const full = `${url.replace("//", "//the-user:the%2Dpassword@")}?apikey=key-in-query`
      const client = (yield* Rpc).client(Redacted.make(full))
      const cause = yield* Effect.flip(Effect.sandbox(client.send([{ method: "a", params: [] }])))
      const error = Option.getOrThrow(Cause.failureOption(cause))
      expect(error.reason).toBe("http")
      expect(error.detail).toContain("HTTP 401: unknown: *** *** *** *** xxx")
      expect(error.message.length).toBeLessThan(600)
      for (const shown of [error.message, String(error), JSON.stringify(error), Cause.pretty(cause)]) {
        expect(secrets.filter((secret) => shown.includes(secret))).toEqual([])
      }
      expect(asked).toEqual([`/v2/${key}?apikey=key-in-query`])
    }).pipe(Effect.provide(Rpc.layer))
)

it("the text of a provider, which may reveal the operator's account, is not part of the public summary", () => {
  const reasons: Readonly<Record<RpcReason, "theirs" | "ours">> = {
    unreachable: "ours",
    timeout: "ours",
    http: "theirs",
    rate_limited: "theirs",
    range: "theirs",
    too_large: "theirs",
    state: "theirs",
    unsupported: "theirs",
    refused: "theirs",
    missing: "theirs",
    behind: "ours",
    inconsistent: "ours",
    garbage: "theirs",
    contradicted: "ours"
  }
  for (const [reason, whose] of Object.entries(reasons) as ReadonlyArray<[RpcReason, string]>) {
    const { message, summary } = new RpcError({ host: "a", method: "eth_call", reason, detail: "of account 7" })
    expect(message).toContain(`eth_call at a failed (${reason}): of account 7. Remedy: `)
    const start = `eth_call at a failed (${reason})${whose === "ours" ? ": of account 7" : ""}. Remedy: `
    expect([summary.slice(0, start.length), summary.includes("of account 7")]).toEqual([start, whose === "ours"])
  }
})
