import type { Cut } from "./moment.ts"

/** A rendered page without its time of sending. */
export interface RenderedPage {
  readonly headers: Readonly<Record<string, string>>
  readonly document: Cut
}

/** Maximum number of cached pages. */
export interface RenderedLimits {
  readonly pages: number
  readonly bytes: number
}

const bytesOf = ({ document }: RenderedPage): number => document.reduce((sum, { length }) => sum + length, 0)

/**
 * A cache of rendered pages, keyed by everything that they show. It needs no invalidation: a page with other contents
 * has another key. Beyond a limit, the least recently used are dropped.
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

  /** The page of a key: rendered and cached on a miss. */
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
