import { countdown } from "../lib/clock.ts"
import type { Language } from "./languages.ts"

/**
 * The time-dependent parts of a page: the server's time, for the countdown of its script, and the remaining time. A
 * rendering has a placeholder for each, so that it can be sent at any time.
 */

/** A rendering, in UTF-8, cut at its marks. */
export type Cut = ReadonlyArray<Buffer | keyof typeof mark>

// Neither shown texts nor HTML may contain a NUL.
export const mark = { now: "\0now\0", left: "\0left\0" } as const

export const cutAtMarks = (document: string): Cut =>
  document.split(/\0(now|left)\0/).map((part, i) => (i % 2 === 0 ? Buffer.from(part) : (part as keyof typeof mark)))

/** The pieces of the document at `now`. @param endsAt the deadline; both in Unix milliseconds */
export const piecesAt = (cut: Cut, now: number, endsAt: number, language: Language): ReadonlyArray<Buffer> => {
  const shown = { now: `${now}`, left: countdown(endsAt - now, language) }
  return cut.map((part) => (typeof part === "string" ? Buffer.from(shown[part]) : part))
}

/** A rendered page without its time of sending. */
export interface RenderedPage {
  readonly headers: Readonly<Record<string, string>>
  readonly document: Cut
}

/** Maximum number of cached pages. */
interface RenderedLimits {
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
