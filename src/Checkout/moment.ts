/**
 * The time-dependent parts of a page: the server's time, for the countdown of its script, and the remaining time. A
 * rendering has a placeholder for each, so that it can be sent at any time.
 */
import { countdown } from "../Domain/countdown.ts"
import type { Language } from "./languages.ts"

/** A rendering, in UTF-8, cut at its marks. */
export type Cut = ReadonlyArray<Buffer | "now" | "left">

// Neither shown texts nor HTML may contain a NUL.
export const mark = { now: "\0now\0", left: "\0left\0" } as const

export const cutAtMarks = (document: string): Cut =>
  document.split(/\0(now|left)\0/).map((part, i) => (i % 2 === 0 ? Buffer.from(part) : part === "now" ? "now" : "left"))

/** The pieces of the document at `now`; `endsAt` is when the time is over. Unix milliseconds. */
export const piecesAt = (cut: Cut, now: number, endsAt: number, language: Language): ReadonlyArray<Buffer> => {
  const shown = { now: () => `${now}`, left: () => countdown(endsAt - now, language) }
  return cut.map((part) => (typeof part === "string" ? Buffer.from(shown[part]()) : part))
}
