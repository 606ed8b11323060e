/** Attackers from many addresses open streams of events against a checkout; other payers are served as before. */
import { type ClientRequest, get } from "node:http"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { defaultAccount } from "../../src/Auth.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { Payments } from "../../src/Payments.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"

const owner = { account: defaultAccount, mode: "test" } as const

const paymentPath = (n: number) =>
  Effect.gen(function* () {
    const payments = yield* Payments
    const terms = { amount: 1_000n, currency: "ETH", chain: "base" } as const
    const { payment } = yield* Effect.orDie(payments.create(owner, { merchantRef: `order ${n}`, ...terms }))
    return `/pay/${payment.checkoutToken}`
  })

/** Asks for a stream from an address of this machine, and keeps it open if there is one. */
const openFrom = (url: string, localAddress: string) =>
  Effect.async<{ readonly asked: ClientRequest; readonly status: number; readonly isOpen: () => boolean }>((resume) => {
    const asked = get(url, { agent: false, localAddress }, (answer) => {
      answer.on("error", () => undefined).resume()
      resume(Effect.succeed({ asked, status: answer.statusCode ?? 0, isOpen: () => !answer.readableEnded }))
    })
    asked.on("error", () => resume(Effect.succeed({ asked, status: 0, isOpen: () => false })))
  })

const { TEST_MODE } = process.env
const count = TEST_MODE === "long" ? 10_000 : 3_000

/** Bytes that ten thousand requests may take, with their clients, which are in this process too. */
const mostMemory = 400 * 1024 * 1024

liveSuite(testApp(), `${count} requests for streams, from 250 addresses`, (test) => {
  test("are a thousand at most, in bounded memory, while other payers see their page and the API goes on", function* () {
    const { call, host, newKey, port } = yield* TestApi
    const key = yield* newKey()
    const paths = yield* Effect.forEach(
      Array.from({ length: 400 }, (_, n) => n),
      paymentPath,
      { concurrency: 20 }
    )
    const before = process.memoryUsage().rss
    const streams = yield* Effect.acquireRelease(
      Effect.forEach(
        Array.from({ length: count }, (_, n) => n),
        (n) => openFrom(`http://${host}:${port}${paths[n % paths.length]}/events`, `127.0.0.${2 + (n % 250)}`),
        { concurrency: 20 }
      ),
      (all) => Effect.sync(() => all.forEach(({ asked }) => void asked.destroy()))
    )
    const refused = streams.filter(({ status }) => status === 429)
    const open = () => streams.filter(({ isOpen, status }) => status === 200 && isOpen()).length
    // Streams opened concurrently with the last one end at once.
    while (open() > 1_000) yield* eventLoopTurn
    expect(open()).toBe(1_000)
    expect(refused.length).toBeGreaterThan(count - 1_500)
    expect(process.memoryUsage().rss - before).toBeLessThan(mostMemory)

    const path = yield* paymentPath(-1)
    expect(yield* call("GET", path)).toMatchObject({ status: 200, text: expect.stringContaining("<main") })
    // Without a stream the page asks again by itself.
    expect(yield* call("GET", `${path}/events`)).toMatchObject({
      ...{ status: 429, text: "", headers: { "retry-after": "30" } }
    })
    expect((yield* call("GET", "/v1/payments", { key })).status).toBe(200)

    for (const { asked } of streams) asked.destroy()
    const url = `http://${host}:${port}${path}/events`
    const again = yield* Effect.repeat(openFrom(url, "127.0.0.250"), { until: ({ status }) => status === 200 })
    again.asked.destroy()
  })
})
