import type { ServerResponse } from "node:http"
import { expect, it } from "@effect/vitest"
import { Cause, Effect, Fiber, Option, Queue, Redacted, Schedule, TestClock, TestServices } from "effect"
import { Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import { clientFor, key, provider, twoCalls } from "../httpNode.ts"

it.scopedLive("gives up on a provider that hangs, after the head or in the middle of the body", () =>
  Effect.gen(function* () {
    const silent = yield* provider(() => {})
    const dripping = yield* provider((_, response) => void response.write("["))
    const errors = yield* Effect.forEach(
      [silent, dripping],
      ({ url }) => Effect.flatMap(clientFor(url), (client) => Effect.flip(twoCalls(client))),
      { concurrency: "unbounded" }
    )
    expect(errors.map(({ reason }) => reason)).toEqual(["timeout", "timeout"])
  }).pipe(Effect.provide(Rpc.layer))
)

it.scoped("gives up at the deadline on a response whose bytes keep coming", () =>
  Effect.gen(function* () {
    const answers = yield* Queue.unbounded<ServerResponse>()
    const { url } = yield* provider((_, response) => void answers.unsafeOffer(response))
    const error = yield* Effect.fork(Effect.flip(twoCalls(yield* clientFor(url))))
    const answer = yield* Queue.take(answers)
    const drip = Effect.sync(() => answer.write(" "))
    yield* Effect.forkScoped(TestServices.provideLive(Effect.repeat(drip, Schedule.spaced("1 second"))))
    yield* TestClock.adjust("5 seconds")
    expect((yield* Fiber.join(error)).reason).toBe("timeout")
  }).pipe(Effect.provide(Rpc.layer))
)

it.scopedLive("reports that it cannot connect when nothing listens", () =>
  Effect.gen(function* () {
    const { close, url } = yield* provider(() => {})
    yield* close
    expect((yield* Effect.flip(twoCalls(yield* clientFor(url)))).reason).toBe("unreachable")
  }).pipe(Effect.provide(Rpc.layer))
)

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
