/**
 * The journal of a broadcast, a file beside the signed one: what was there before, and each step before it is made, a line of JSON
 * each. Lines are only added, and are on the disk before the work goes on: whoever is killed goes on where the journal ends.
 */
import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs"
import { Clock, Effect, Schema } from "effect"
import { type CollectRefused, collectRefusal } from "./CollectRefused.ts"

const Amounts = Schema.Record({ key: Schema.String, value: Schema.String })

const Entry = Schema.Union(
  Schema.Struct({
    event: Schema.Literal("begun"),
    at: Schema.Number,
    /** Of the signed file. */
    checksum: Schema.String,
    block: Schema.Number,
    /** What each address had then: base units by address, by currency. */
    before: Schema.Record({ key: Schema.String, value: Amounts })
  }),
  Schema.Struct({
    event: Schema.Literal("sending", "mined", "lost", "confirmed", "fell out"),
    at: Schema.Number,
    /** In the list of transactions. */
    place: Schema.Number,
    step: Schema.Number,
    hash: Schema.String
  }),
  Schema.Struct({ event: Schema.Literal("accounted", "finished"), at: Schema.Number, result: Schema.Unknown })
)
export type JournalEntry = typeof Entry.Type

/** An entry without its time, which the journal adds. */
export type JournalLine = JournalEntry extends infer Each ? (Each extends unknown ? Omit<Each, "at"> : never) : never

export interface Journal {
  readonly path: string
  /** What was there when it was opened. */
  readonly entries: ReadonlyArray<JournalEntry>
  /** Is on the disk when it returns. */
  readonly add: (line: JournalLine) => Effect.Effect<void>
}

const decodeEntry = Schema.decodeUnknown(Schema.parseJson(Entry))

/** The whole lines of a file, and their bytes: a last one that was cut short was never acted on. */
const wholeLines = (text: string) => {
  const end = text.lastIndexOf("\n") + 1
  return { lines: text.slice(0, end).split("\n").slice(0, -1), bytes: Buffer.byteLength(text.slice(0, end)) }
}

/** Opens the journal beside a signed file until the scope closes. */
export const openJournal = Effect.fn("Collect.openJournal")(function* (path: string) {
  const text = yield* Effect.try({
    try: () => (existsSync(path) ? readFileSync(path, "utf8") : ""),
    catch: (cause) => collectRefusal(`${path} cannot be read: ${cause}`)
  })
  const { bytes, lines } = wholeLines(text)
  const entries = yield* Effect.forEach(
    lines,
    (line, i) =>
      Effect.mapError(decodeEntry(line), () =>
        collectRefusal(
          `Line ${i + 1} of ${path} is damaged: what was sent cannot be told from it. Restore it from a backup.`
        )
      ),
    { concurrency: 1 }
  )
  const file = yield* Effect.acquireRelease(
    Effect.try({
      try: () => {
        const file = openSync(path, "a", 0o600)
        ftruncateSync(file, bytes)
        return file
      },
      catch: (cause): CollectRefused => collectRefusal(`${path} cannot be written: ${cause}`)
    }),
    (file) => Effect.sync(() => closeSync(file))
  )
  const journal: Journal = {
    path,
    entries,
    add: (line) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) =>
        Effect.sync(() => {
          writeSync(file, `${JSON.stringify({ ...line, at })}\n`)
          fsyncSync(file)
        })
      )
  }
  return journal
})
