/** A real browser for tests of pages. Every request that leaves the origin under test is refused and noted. */
import { Effect } from "effect"
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core"
import { launchOptions } from "./browserPlace.ts"

/** A headless Chromium, closed with the scope. */
export const browser = Effect.acquireRelease(
  Effect.promise(() => chromium.launch(launchOptions())),
  (launched) => Effect.promise(() => launched.close())
)

let ofProcess: Promise<Browser> | undefined

/** One for all suites of this process, with which it ends: starting it takes longer than most tests. */
const shared = Effect.promise(() => (ofProcess ??= chromium.launch(launchOptions())))

export interface Visitor {
  readonly context: BrowserContext
  /** URLs that a page asked for outside its origin. Each was refused. */
  readonly strayed: ReadonlyArray<string>
}

/** A visitor with cookies, storage and caches of their own, whose pages reach `origin` only. */
export const visitor = (origin: string, options: BrowserContextOptions = {}) =>
  Effect.acquireRelease(
    Effect.flatMap(shared, (launched) =>
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
      })
    ),
    ({ context }) => Effect.promise(() => context.close())
  )

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
