/**
 * The time-dependent parts of a page: the server's time, for the countdown of its script, the remaining time, and the share
 * that it is of the whole. A rendering has a placeholder for each, so that it can be sent at any time.
 */
import { countdown, type Period, shareLeft } from "../lib/clock.ts"
import type { Language } from "./languages.ts"

/** A rendering, in UTF-8, cut at its marks. */
export type Cut = ReadonlyArray<Buffer | keyof typeof mark>

// Neither shown texts nor HTML may contain a NUL.
export const mark = { now: "\0now\0", left: "\0left\0", share: "\0share\0" } as const

export const cutAtMarks = (document: string): Cut =>
  document
    .split(/\0(now|left|share)\0/)
    .map((part, i) => (i % 2 === 0 ? Buffer.from(part) : (part as keyof typeof mark)))

/** The pieces of the document at `now`. Unix milliseconds. */
export const piecesAt = (cut: Cut, now: number, period: Period, language: Language): ReadonlyArray<Buffer> => {
  const shown = {
    now: () => `${now}`,
    left: () => countdown(period.endsAt - now, language),
    share: () => `${shareLeft(period, now)}`
  }
  return cut.map((part) => (typeof part === "string" ? Buffer.from(shown[part]()) : part))
}
