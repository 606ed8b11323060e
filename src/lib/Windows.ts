/** Counts by key in windows of time, for all limits on how often something may happen. Pure. */
import { BoundedMap } from "./BoundedMap.ts"

/** A fixed window that began with the first of what is counted in it. */
export interface Window {
  /** Unix milliseconds. */
  start: number
  count: number
}

/** A window is over after its length, or when it begins in the future because the clock was set back. */
export const isOver = ({ start }: Window, length: number, now: number): boolean => now < start || now >= start + length

/** How many of a key there may be in a window. */
export type Limit = readonly [key: string, most: number]

/** Keys in memory. */
const capacity = 10_000

/** Times in Unix milliseconds. */
export class Windows {
  readonly #windows = new BoundedMap<string, Window>(capacity)
  readonly #length: number

  /** @param length of a window, milliseconds */
  constructor(length: number) {
    this.#length = length
  }

  #windowOf(key: string, now: number): Window {
    const window = this.#windows.get(key)
    return window === undefined || isOver(window, this.#length, now) ? { start: now, count: 0 } : window
  }

  /** Counts one of a key. Returns how many milliseconds are left of its window where it is more than `most`, else 0. */
  excess(key: string, most: number, now: number): number {
    const { count, start } = this.#windowOf(key, now)
    this.#windows.set(key, { start, count: count + 1 })
    return count < most ? 0 : start + this.#length - now
  }

  /** When there is room for one more of each key, if there is none at `now`. */
  fullUntil(limits: ReadonlyArray<Limit>, now: number): number | undefined {
    const full = limits.map(([key, most]) => ({ most, ...this.#windowOf(key, now) })).filter((w) => w.count >= w.most)
    return full.length === 0 ? undefined : Math.max(...full.map(({ start }) => start + this.#length))
  }

  /** Counts one of each key, unless one of them has had its most. Whether they were counted. */
  take(limits: ReadonlyArray<Limit>, now: number): boolean {
    if (this.fullUntil(limits, now) !== undefined) return false
    for (const [key, most] of limits) this.excess(key, most, now)
    return true
  }
}
