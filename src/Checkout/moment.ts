/**
 * What a page shows of the moment at which it is sent: the server's time, which its script counts by, and how much time is
 * left. A rendering has a mark in place of each, so that it serves every moment.
 */
import { countdown } from "../Domain/countdown.ts"
import type { Language } from "./languages.ts"

/** A rendering, in UTF-8, cut at its marks. */
export type Cut = ReadonlyArray<Buffer | "now" | "left">

// No text that is shown may have a NUL, and HTML has none.
export const mark = { now: "\0now\0", left: "\0left\0" } as const

export const cutAtMarks = (document: string): Cut =>
  document.split(/\0(now|left)\0/).map((part, i) => (i % 2 === 0 ? Buffer.from(part) : part === "now" ? "now" : "left"))

/** The pieces of the document at `now`; `endsAt` is when the time is over. Unix milliseconds. */
export const piecesAt = (cut: Cut, now: number, endsAt: number, language: Language): ReadonlyArray<Buffer> => {
  const shown = { now: () => `${now}`, left: () => countdown(endsAt - now, language) }
  return cut.map((part) => (typeof part === "string" ? Buffer.from(shown[part]()) : part))
}
