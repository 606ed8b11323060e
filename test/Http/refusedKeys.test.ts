import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { shownPrefix } from "../../src/Auth/keyFormat.ts"
import { TestApi, testApp } from "../lib/api.ts"

it.each([
  ["svc_live_ABCDefgh0123456789ABCDefgh0123456789ABCDefgh012345678", "svc_live_ABCD…"],
  ["svc_test_ABCD", "none"],
  ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "none"],
  ["correct horse battery staple", "none"],
  ["", "none"]
])("of a key the log shows four random characters at most: %s", (key, shown) => expect(shownPrefix(key)).toBe(shown))

it.live(
  "refused keys are logged by their beginning with the request's id, and no more than three a minute of a network",
  () =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const key = yield* api.newKey()
      const lines: Array<string> = []
      const spy = vi.spyOn(console, "error").mockImplementation((line) => void lines.push(String(line)))
      const ask = (given: object) => api.call("GET", "/v1/payments", given)
      const ids: Array<unknown> = []
      yield* ask({})
      for (let i = 0; i < 5; i++) ids.push((yield* ask({ key: `${key}x` })).headers["x-request-id"])
      spy.mockRestore()
      const refusals = lines
        .map((line) => JSON.parse(line))
        .filter(({ message }) => message === "an API key was refused")
      expect(refusals.map(({ annotations }) => annotations)).toEqual(
        ids.slice(0, 3).map((requestId) => ({ prefix: `${key.slice(0, 13)}…`, network: "127.0.0.1", requestId }))
      )
      expect(lines.join()).not.toContain(key.slice(0, 20))
    }).pipe(Effect.provide(testApp({ log: { level: "info", format: "json" } })))
)
