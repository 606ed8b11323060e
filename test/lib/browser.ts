/** A real browser for tests of pages. Every request that leaves the origin under test is refused and noted. */
import { Context, Effect, Layer } from "effect"
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core"
import { type BrowserPlace, launchOptions } from "./browserPlace.ts"

/** A headless Chromium, closed with the scope. */
const browserAt = (place?: BrowserPlace) =>
  Effect.acquireRelease(
    Effect.promise(() => chromium.launch(launchOptions(place))),
    (launched) => Effect.promise(() => launched.close())
  )

export const browser = browserAt()

let ofProcess: Promise<Browser> | undefined

/** One for all suites of this process, with which it ends: starting it takes longer than most tests. */
const shared = Effect.promise(() => (ofProcess ??= chromium.launch(launchOptions())))

export interface Visitor {
  readonly context: BrowserContext
  /** URLs that a page asked for outside its origin. Each was refused. */
  readonly strayed: ReadonlyArray<string>
}

/** A browser of a suite's own, from another place than that of all others. */
export class Chromium extends Context.Tag("test/Chromium")<Chromium, Browser>() {
  static readonly layerAt = (place: BrowserPlace | undefined) => Layer.scoped(Chromium, browserAt(place))
}

/** Someone's own part of a browser: cookies, language, colour scheme. It reaches `origin` only. */
const visitorIn = (launched: Browser, origin: string, options: BrowserContextOptions) =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<Visitor> => {
      const context = await launched.newContext({ locale: "en-US", ...options })
      const strayed: Array<string> = []
      await context.route(
        (url) => url.origin !== origin && !["data:", "blob:", "about:"].includes(url.protocol),
        (route) => {
          strayed.push(route.request().url())
          return route.abort()
        }
      )
      return { context, strayed }
    }),
    ({ context }) => Effect.promise(() => context.close())
  )

/** A visitor with cookies, storage and caches of their own. */
export const visitor = (origin: string, options: BrowserContextOptions = {}) =>
  Effect.flatMap(shared, (launched) => visitorIn(launched, origin, options))

/** A visitor in the browser of the suite. */
export const visitorOf = (origin: string, options: BrowserContextOptions = {}) =>
  Effect.flatMap(Chromium, (launched) => visitorIn(launched, origin, options))

/** How copying fails on a visitor's pages. */
const copyFaults = {
  refuses: "",
  "is absent": "delete Navigator.prototype.clipboard",
  "and the old way fail": "document.execCommand = () => false"
}

/** Pages may read the clipboard, and not write to it: the browser refuses that, or has no clipboard. */
export const unableToCopy = async (context: BrowserContext, fault: keyof typeof copyFaults) => {
  await context.grantPermissions(["clipboard-read"])
  await context.addInitScript(`if (!location.hash) { ${copyFaults[fault]} }`)
}

/** What is on the clipboard, as another page of the visitor sees it. */
export const copied = async (context: BrowserContext, url: string): Promise<string> => {
  const page = await context.newPage()
  await page.goto(`${url}#reads`)
  const text = await page.evaluate(() => navigator.clipboard.readText())
  await page.close()
  return text
}
