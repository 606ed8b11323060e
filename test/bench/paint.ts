import { createServer } from "node:http"
import { Effect } from "effect"
import type { Browser } from "playwright-core"
import { browser } from "../lib/browser.ts"
import { listenHere } from "../lib/loopback.ts"
import { post } from "./api.ts"
import { createKey, install, localChain, startDaemon } from "./daemon.ts"
import { type Figure, median, millis } from "./Figure.ts"

const rounds = 9
const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }

/** A page of a line, from node:http alone: what the browser and the loopback take. */
const bareServer = Effect.suspend(() =>
  listenHere(
    createServer((_, response) => {
      response
        .writeHead(200, { "content-type": "text/html" })
        .end("<!doctype html><title>bare</title><p>Pay 25 USDC</p>")
    })
  )
)

/** Milliseconds from asking for a page to its first paint with contents, by someone who was never here. */
const firstPaint = async (launched: Browser, url: string): Promise<number> => {
  const context = await launched.newContext(phone)
  const page = await context.newPage()
  await page.goto(url)
  const painted = await page.waitForFunction(
    () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0
  )
  const time = Number(await painted.jsonValue())
  await context.close()
  return time
}

/** How soon a payer sees the checkout, beside a page of one line. */
export const paint = Effect.gen(function* () {
  const installation = yield* install(yield* localChain)
  const { said: port } = yield* startDaemon(installation)
  const key = yield* createKey(installation)
  const { checkoutUrl } = yield* post<{ readonly checkoutUrl: string }>(port, key, "/v1/payments", {
    merchantRef: "order-1",
    amount: "25000000",
    currency: "USDC",
    chain: "base"
  })
  const { url: bareUrl } = yield* bareServer
  const launched = yield* browser
  const times = yield* Effect.promise(async () => {
    const checkout: Array<number> = []
    const bare: Array<number> = []
    for (let round = 0; round < rounds; round++) {
      bare.push(await firstPaint(launched, bareUrl))
      checkout.push(await firstPaint(launched, `http://127.0.0.1:${port}${new URL(checkoutUrl).pathname}`))
    }
    return { checkout: median(checkout), bare: median(bare) }
  })
  const figures: ReadonlyArray<Figure> = [
    {
      what: "first paint of a checkout, later",
      measured: `${millis(times.checkout)}, of a phone without a cache`,
      beside: `${millis(times.bare)} of a page of one line`,
      judged: times.checkout - times.bare,
      floor: { atMost: 150 },
      goal: { atMost: 50 },
      written: millis
    }
  ]
  return figures
}).pipe(Effect.scoped)
