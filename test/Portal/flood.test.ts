/** Strangers who try passwords without pause, over HTTP, while people sign in. */
import { expect } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestApi, testApp } from "../lib/api.ts"
import { signIn, visitorOf } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"

const me = "/portal/a/default/test/me"
const ada = { name: "ada", password: "correct horse battery" }
const home = "203.0.113.7"

/** The addresses are those that a proxy on this machine has seen. */
const app = testApp({ server: { ...testSettings("").server, trustedProxies: ["127.0.0.0/8"] } })

/** One attempt from an address: the status, and how long it took in milliseconds. */
const attempt = (url: string, address: string, fields: typeof ada) =>
  Effect.map(
    Effect.timed(visitorOf(url).post("/portal/sign-in", fields, { "x-forwarded-for": address })),
    ([took, { status }]) => ({ status, took })
  )

liveSuite(app, "a flood of passwords", (test) => {
  test("from three hundred addresses refuses no one who has signed in from their network", function* () {
    const { host, port } = yield* TestApi
    const url = `http://${host}:${port}`
    yield* Effect.flatMap(signIn({ host, port }), (visitor) => visitor.post(`${me}/password`, ada))
    expect((yield* attempt(url, home, ada)).status).toBe(303)

    let sent = 0
    let refused = 0
    const isFull = yield* Deferred.make<void>()
    // Each address is a network of its own, and comes again and again.
    const stranger = Effect.suspend(() => {
      sent += 1
      const n = sent % 300
      return attempt(url, `10.${n >> 8}.${n & 255}.1`, { ...ada, password: "wrong wrong wrong" })
    }).pipe(
      Effect.tap(({ status }) => {
        if (status !== 429) return Effect.void
        refused += 1
        return Deferred.succeed(isFull, undefined)
      }),
      Effect.forever
    )
    const flood = yield* Effect.forkAll(Array.from({ length: 80 }, () => stranger))
    yield* Deferred.await(isFull)
    const right = yield* Effect.forEach([1, 2, 3, 4, 5, 6], () => attempt(url, home, ada), { concurrency: 1 })
    yield* Fiber.interrupt(flood)
    expect(right.map(({ status }) => status)).toEqual([303, 303, 303, 303, 303, 303])
    expect(refused).toBeGreaterThan(6)
  })
})
