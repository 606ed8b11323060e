import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, HashMap, Layer, Logger, TestClock } from "effect"
import { Keys, RateLimits } from "../../src/Auth.ts"
import { ApiError } from "../../src/Domain/ApiError.ts"
import { Idempotency } from "../../src/Http/idempotency.ts"
import { makeRespond } from "../../src/Http/respond.ts"
import type { Router, ServedOperation } from "../../src/Http/routes.ts"
import { StoreUnavailable } from "../../src/Sql.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { testSettingsLayer } from "../lib/settings.ts"

/** The response of a public path with this handler, and the log lines. */
const respondTo = (handled: ReturnType<ServedOperation["handle"]>) =>
  Effect.gen(function* () {
    const logged: Array<{ message: unknown; annotations: object; cause: string }> = []
    const logger = Logger.make(({ annotations, cause, message }) => {
      logged.push({
        message: [message].flat()[0],
        annotations: Object.fromEntries(HashMap.toEntries(annotations)),
        cause: Cause.pretty(cause)
      })
    })
    const operation: ServedOperation = {
      permissions: [],
      takesBody: false,
      redact: String,
      successStatus: 200,
      handle: () => handled
    }
    const router: Router = () => ({
      route: { path: "/things", isPublic: true, operations: new Map([["GET", operation]]) },
      params: {}
    })
    const respond = yield* makeRespond(router)
    const request = Object.assign(new IncomingMessage(new Socket()), {
      method: "GET",
      url: "/things?secret=1",
      httpVersion: "1.1",
      headers: { host: "x" }
    })
    return {
      logged,
      reply: Effect.map(respond(request, Effect.succeed(Buffer.alloc(0)), "req_1"), ({ text, ...reply }) => ({
        ...reply,
        body: JSON.parse(text)
      })).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
    }
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Layer.mock(Keys, {}),
        Layer.mock(RateLimits, { spend: () => expect.unreachable() }),
        Layer.mock(Idempotency, {}),
        testSettingsLayer("unused")
      )
    )
  )

clockTest("a refusal is sent unchanged, and not logged", function* () {
  const refusal = { code: "RATE_UNAVAILABLE" as const, message: "No.", details: [1] }
  const error = new ApiError({ ...refusal, headers: { "retry-after": "9" } })
  const { logged, reply } = yield* respondTo(Effect.fail(error))
  expect(yield* reply).toEqual({
    status: 503,
    headers: { "retry-after": "9" },
    body: { error: { ...refusal, requestId: "req_1" } }
  })
  expect(logged).toEqual([])
})

const defects: ReadonlyArray<readonly [what: string, handled: ReturnType<ServedOperation["handle"]>]> = [
  ["a defect", Effect.die(new Error("a bug"))],
  [
    "a handler that throws",
    Effect.suspend(() => {
      throw new Error("a bug")
    })
  ],
  ["a body that is no JSON", Effect.succeed({ body: { amount: 5n } })]
]

it.effect.each(defects)("%s is a 500 without details, logged once with its cause", ([, handled]) =>
  Effect.gen(function* () {
    const { logged, reply } = yield* respondTo(handled)
    const { body, status } = yield* reply
    expect(status).toBe(500)
    expect(body.error).toMatchObject({ code: "INTERNAL", requestId: "req_1" })
    expect(body.error.message).not.toMatch(/bug|BigInt/)
    const annotations = { requestId: "req_1", method: "GET", path: "/things" }
    const cause = expect.stringMatching(/a bug|BigInt/)
    expect(logged).toEqual([{ message: "a request failed", annotations, cause }])
  })
)

clockTest("an unavailable store is a 503, logged at intervals only", function* () {
  const down = new StoreUnavailable({ code: "SQLITE_FULL", message: "The disk is full." })
  const { logged, reply } = yield* respondTo(Effect.fail(down))
  expect(yield* reply).toMatchObject({
    status: 503,
    headers: { "retry-after": "5" },
    body: { error: { code: "STORE_UNAVAILABLE", requestId: "req_1" } }
  })
  for (let n = 0; n < 20; n++) yield* reply
  expect(logged.map(({ message }) => message)).toEqual(Array(6).fill("The disk is full."))
  yield* TestClock.adjust("1 minute")
  yield* reply
  expect(logged).toHaveLength(7)
  expect(logged.at(-1)?.annotations).toMatchObject({ omitted: 15 })
})

clockTest("interrupted work, as at a shutdown, is not a defect", function* () {
  const { logged, reply } = yield* respondTo(Effect.flatMap(Effect.fork(Effect.interrupt), Fiber.join))
  expect(Exit.isInterrupted(yield* Effect.exit(reply))).toBe(true)
  expect(logged).toEqual([])
})
