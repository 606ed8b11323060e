import { describe, expect, it } from "@effect/vitest"
import { type RenderedPage, RenderedPages } from "../../src/Checkout/RenderedPages.ts"

const page = (bytes: number): RenderedPage => ({ headers: {}, document: [Buffer.alloc(bytes)] })

describe("rendered pages", () => {
  it("are rendered once as long as they are requested", () => {
    const pages = new RenderedPages()
    let rendered = 0
    const render = () => {
      rendered += 1
      return page(10)
    }
    const first = pages.of("a", render)
    expect([pages.of("a", render), pages.of("a", render)]).toEqual([first, first])
    pages.of("b", render)
    expect([rendered, pages.size]).toEqual([2, { pages: 2, bytes: 20 }])
  })

  it("are bounded in number and bytes: those go that were asked for longest ago", () => {
    const pages = new RenderedPages({ pages: 3, bytes: 100 })
    const kept = (...names: ReadonlyArray<string>) =>
      names.filter((name) => {
        let isKept = true
        pages.of(name, () => {
          isKept = false
          return page(10)
        })
        return isKept
      })
    kept("a", "b", "c")
    expect(kept("a")).toEqual(["a"])
    pages.of("d", () => page(10))
    expect([pages.size, kept("a", "c", "d")]).toEqual([{ pages: 3, bytes: 30 }, ["a", "c", "d"]])
    pages.of("large", () => page(80))
    expect(pages.size).toEqual({ pages: 3, bytes: 100 })
    // One that is larger than all that is kept is sent, and not kept.
    pages.of("too large", () => page(101))
    expect(pages.size).toEqual({ pages: 0, bytes: 0 })
  })
})
