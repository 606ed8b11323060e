/**
 * The look of the portal: the page that shows every component, compared pixel by pixel with the pictures in `pictures/`.
 *
 * A picture depends on the browser, its fonts and its rasterizer. So that only a change of the look fails the test, it is
 * taken by the Chromium that npm brings, whatever else is installed, in the fonts of that package. There the same page gives
 * the same pixels on every machine; processors round the colours of edges by a level or two, and `tolerance` is above that.
 * Where npm has no Chromium, on a Mac for one, nothing is compared and the test says that it was skipped.
 *
 * `npm run screenshots -- --style` takes the pictures anew. A picture that differs is left in the folder .screenshots, with
 * another in which the blocks that differ are red.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "playwright-core"
import { PNG } from "pngjs"
import { beforeEach, describe } from "vitest"
import { TestApi, testApp } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { Chromium, visitorOf } from "../lib/browser.ts"
import { npmPlace } from "../lib/browserPlace.ts"
import { bring, signIn } from "../lib/portal.ts"
import { root } from "../lib/processes.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { stylePage } from "./Style.tsx"

const path = "/portal/a/default/test/style"
const place = npmPlace()
const widths = [360, 1280]
const schemes = ["light", "dark"] as const
const stored = join(root, "test/Portal/pictures")
const written = join(root, ".screenshots")

/** Whether the pictures are taken anew, as scripts/screenshots.mjs asks for. */
// @effect-diagnostics-next-line processEnv:off
const renews = process.env["RENEW_PICTURES"] !== undefined

/** Pixels of a block's side. */
const side = 8
/** Levels of 255 by which a channel of a pixel may be off. */
const tolerance = 4

/** Where the bytes of a pixel begin: red, green, blue, alpha. */
const at = ({ width }: PNG, x: number, y: number): number => (y * width + x) * 4

/** The blocks that differ, from the top; those that only one of the pictures has among them. */
const differing = (before: PNG, after: PNG): ReadonlyArray<readonly [x: number, y: number]> => {
  const isSame = (x: number, y: number) => {
    if (x >= Math.min(before.width, after.width) || y >= Math.min(before.height, after.height)) return false
    const [one, other] = [at(before, x, y), at(after, x, y)]
    return [0, 1, 2].every((c) => Math.abs((before.data[one + c] ?? 0) - (after.data[other + c] ?? 0)) <= tolerance)
  }
  const [width, height] = [Math.max(before.width, after.width), Math.max(before.height, after.height)]
  const blocks = new Map<string, readonly [x: number, y: number]>()
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const block = [x - (x % side), y - (y % side)] as const
      if (!isSame(x, y)) blocks.set(block.join(), block)
    }
  }
  return [...blocks.values()]
}

/** The picture with the blocks in red. */
const reddened = (picture: PNG, blocks: ReadonlyArray<readonly [x: number, y: number]>): Buffer => {
  const copy = PNG.sync.read(PNG.sync.write(picture))
  const mark = (pixel: number) => {
    copy.data[pixel] = 255
    for (const channel of [pixel + 1, pixel + 2]) copy.data[channel] = (copy.data[channel] ?? 0) / 2
  }
  for (const [left, top] of blocks) {
    for (let y = top; y < Math.min(top + side, copy.height); y++) {
      for (let x = left; x < Math.min(left + side, copy.width); x++) mark(at(copy, x, y))
    }
  }
  return PNG.sync.write(copy)
}

/** The picture as it is stored: a tenth smaller than the browser's own. */
const packed = (picture: PNG): Buffer =>
  PNG.sync.write(picture, { colorType: 2, filterType: 0, deflateLevel: 9, deflateStrategy: 0 })

/** Puts all words into the fonts of npm's Chromium. */
const setFonts = async (page: Page): Promise<void> => {
  const folder = join(dirname(place?.env["FONTCONFIG_FILE"] ?? ""), "fonts/fonts/Open_Sans")
  const faces = (["Regular", "Bold"] as const).map((name) => {
    const font = readFileSync(join(folder, `OpenSans-${name}.ttf`)).toString("base64")
    const weight = name === "Bold" ? "600 700" : "400"
    return `@font-face { font-family: Picture; font-weight: ${weight}; src: url(data:font/ttf;base64,${font}) }`
  })
  await page.addStyleTag({ content: `${faces.join("\n")} :root { --font: Picture; --mono: Picture }` })
  await page.evaluate(() => document.fonts.ready)
}

/** What differs between the page as it looks now and its picture; undefined where nothing does. */
const compared = async (page: Page, name: string): Promise<string | undefined> => {
  const taken = await page.screenshot({ fullPage: true, animations: "disabled" })
  const file = join(stored, `style-${name}.png`)
  const after = PNG.sync.read(taken)
  if (renews) writeFileSync(file, packed(after))
  const before = existsSync(file) ? PNG.sync.read(readFileSync(file)) : new PNG({ width: 1, height: 1 })
  const blocks = differing(before, after)
  const [first] = blocks
  if (first === undefined) return undefined
  mkdirSync(written, { recursive: true })
  writeFileSync(join(written, `style-${name}.png`), taken)
  writeFileSync(join(written, `style-${name}-differs.png`), reddened(after, blocks))
  const headings = await page.$$eval("h1, h2", (all) =>
    all.map((one) => ({ text: one.textContent, top: one.getBoundingClientRect().top + window.scrollY }))
  )
  const under = headings.findLast(({ top }) => top < first[1] + side)?.text ?? "the frame"
  return `${name}: ${blocks.length} blocks of ${side} × ${side} pixels differ, the first at ${first.join(", ")}, under ${under}. See .screenshots/style-${name}.png and .screenshots/style-${name}-differs.png. If it is meant to look so: npm run screenshots -- --style`
}

liveSuite(Layer.merge(testApp(), Chromium.layerAt(place)), "the page of all components", (test, it) => {
  /** The page in a window of a width. */
  const opened = Effect.fnUntraced(function* (width: number) {
    const api = yield* TestApi
    const origin = `http://${api.host}:${api.port}`
    const viewport = { width, height: 900 }
    const { context, strayed } = yield* visitorOf(origin, { viewport, timezoneId: "UTC", bypassCSP: true })
    yield* bring(yield* signIn(api), context, origin)
    const page = yield* Effect.promise(() => context.newPage())
    yield* Effect.promise(async () => {
      await page.route(origin + path, (route) => route.fulfill({ contentType: "text/html", body: stylePage() }))
      await page.goto(origin + path)
    })
    return { page, strayed }
  })

  describe("looks as its pictures do", () => {
    beforeEach(({ skip }) =>
      skip(place === undefined, "The pictures are by npm's Chromium, which is for Linux on x64.")
    )

    it.scoped.each(widths)("%i pixels wide", (width) =>
      Effect.gen(function* () {
        const { page } = yield* opened(width)
        yield* Effect.promise(() => setFonts(page))
        const look = (colorScheme: (typeof schemes)[number]) =>
          Effect.promise(async () => {
            await page.emulateMedia({ colorScheme })
            return compared(page, `${width}-${colorScheme}`)
          })
        const differences = yield* Effect.forEach(schemes, look, { concurrency: 1 })
        expect(differences.filter(Boolean)).toEqual([])
      })
    )
  })

  test("axe finds nothing on it at any width in either colour scheme", function* () {
    const { page, strayed } = yield* opened(360)
    expect(yield* Effect.promise(() => problemsOf(page))).toEqual([])
    expect(strayed).toEqual([])
  })
})
