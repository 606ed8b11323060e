/**
 * A real browser for tests of pages: the Chromium named by CHROMIUM_PATH, the system's, or Playwright's own. Every request
 * that leaves the origin under test is refused and noted.
 */
import { existsSync } from "node:fs"
import { Effect } from "effect"
import { type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core"

const places = () => [
  process.env.CHROMIUM_PATH ?? "",
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
  chromium.executablePath()
]

/** The path of the browser. Throws where there is none. */
export const executable = () => {
  const found = places().find((path) => path !== "" && existsSync(path))
  if (found === undefined) {
    throw new Error(
      "The pages are tested in Chromium, and there is none: apt-get install chromium, or npx playwright-core install chromium, or set CHROMIUM_PATH."
    )
  }
  return found
}

/** A headless Chromium, closed with the scope. */
export const browser = Effect.acquireRelease(
  Effect.promise(() =>
    chromium.launch({ executablePath: executable(), args: ["--no-sandbox", "--disable-dev-shm-usage"] })
  ),
  (launched) => Effect.promise(() => launched.close())
)

export interface Visitor {
  readonly context: BrowserContext
  /** URLs that a page asked for outside its origin. Each was refused. */
  readonly strayed: ReadonlyArray<string>
}

/** A browser of somebody's own: cookies, language, colour scheme. It reaches `origin` only. */
export const visitor = (origin: string, options: BrowserContextOptions = {}) =>
  Effect.flatMap(browser, (launched) =>
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
  )
