import { BoundedMap } from "../lib/BoundedMap.ts"
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

/**
 * A cache of rendered pages, keyed by everything that they show. It needs no invalidation: a page with other contents
 * has another key. A page has some 20 KB.
 */
export class RenderedPages extends BoundedMap<string, RenderedPage> {
  constructor(capacity = 500) {
    super(capacity)
  }

  /** The page of a key: rendered and cached on a miss. Those go that were asked for longest ago. */
  of(key: string, render: () => RenderedPage): RenderedPage {
    const page = this.get(key) ?? render()
    this.set(key, page)
    return page
  }
}
