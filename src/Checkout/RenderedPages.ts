import type { Cut } from "./moment.ts"

/** A page as it is sent, but for the moment at which it is. */
export interface RenderedPage {
  readonly headers: Readonly<Record<string, string>>
  readonly document: Cut
}

/** Of pages that are kept. */
export interface RenderedLimits {
  readonly pages: number
  readonly bytes: number
}

const bytesOf = ({ document }: RenderedPage): number => document.reduce((sum, { length }) => sum + length, 0)

/**
 * Pages that have been rendered, by all that they show. Nothing has to invalidate them: a page that shows something else
 * has another key. Beyond a limit, those go that were asked for longest ago.
 */
export class RenderedPages {
  readonly #limits: RenderedLimits
  readonly #pages = new Map<string, RenderedPage>()
  #bytes = 0

  constructor(limits: RenderedLimits = { pages: 1_000, bytes: 16 * 1024 * 1024 }) {
    this.#limits = limits
  }

  get size(): RenderedLimits {
    return { pages: this.#pages.size, bytes: this.#bytes }
  }

  /** The page of a key: rendered, and kept, unless it is there. */
  of(key: string, render: () => RenderedPage): RenderedPage {
    const kept = this.#pages.get(key)
    const page = kept ?? render()
    if (kept === undefined) this.#bytes += bytesOf(page)
    else this.#pages.delete(key)
    this.#pages.set(key, page)
    for (const [oldest, dropped] of this.#pages) {
      if (this.#pages.size <= this.#limits.pages && this.#bytes <= this.#limits.bytes) break
      this.#pages.delete(oldest)
      this.#bytes -= bytesOf(dropped)
    }
    return page
  }
}
