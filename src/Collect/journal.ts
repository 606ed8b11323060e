/**
 * The journal of a broadcast, a file beside the signed one: what was there before, and each step before it is made, a line of JSON
 * each. Lines are only added, and are on the disk before the work goes on: whoever is killed goes on where the journal ends.
 */
import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync
} from "node:fs"
import { Clock, Effect, Schema } from "effect"
import { acquire } from "../Sql/InstanceLock.ts"
import { type CollectRefused, collectRefusal } from "./Plan.ts"
import { SweepResult } from "./reconcile.ts"

const Entry = Schema.Union(
  Schema.Struct({
    event: Schema.Literal("begun"),
    at: Schema.Number,
    /** Of the signed file. */
    checksum: Schema.String,
    block: Schema.Number,
    /** The places of the moves that are left out. */
    left: Schema.Array(Schema.Number),
    /** What the addresses had then: base units by currency and address. */
    before: Schema.Record({ key: Schema.String, value: Schema.String.pipe(Schema.pattern(/^\d{1,78}$/)) })
  }),
  Schema.Struct({
    event: Schema.Literal("sending", "mined", "lost", "confirmed", "fell out"),
    at: Schema.Number,
    /** In the list of transactions. */
    place: Schema.Number,
    step: Schema.Number,
    hash: Schema.String
  }),
  Schema.Struct({ event: Schema.Literal("accounted", "finished"), at: Schema.Number, result: SweepResult })
)
export type JournalEntry = typeof Entry.Type

/** An entry without its time, which the journal adds. */
export type JournalLine = JournalEntry extends infer Each ? (Each extends unknown ? Omit<Each, "at"> : never) : never

export type Journal = Effect.Effect.Success<ReturnType<typeof openJournal>>

const decodeEntry = Schema.decodeUnknown(Schema.parseJson(Entry))

/** The whole lines of a file, and their bytes: a last one that was cut short was never acted on. */
const wholeLines = (text: string) => {
  const end = text.lastIndexOf("\n") + 1
  return { lines: text.slice(0, end).split("\n").slice(0, -1), bytes: Buffer.byteLength(text.slice(0, end)) }
}

/** How every journal begins: a file of anything else is left as it is. */
const beginning = '{"event":'

const mode = 0o600

/** Opens a file to read it and to add to it, for its owner only. What another user says of money is not believed. */
const openOwn = (path: string): number => {
  const file = openSync(path, "a+", mode)
  if (fstatSync(file).uid === process.geteuid?.()) {
    fchmodSync(file, mode)
    return file
  }
  closeSync(file)
  throw new Error("it is another user's: run this as that user")
}

/** Adds a whole line, or nothing of it. */
const addLine = (file: number, line: string) => {
  const { size } = fstatSync(file)
  const bytes = Buffer.from(`${line}\n`)
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
    fsyncSync(file)
  } catch (cause) {
    ftruncateSync(file, size)
    throw cause
  }
}

/** Opens the journal beside a signed file until the scope closes: no other process can have it open meanwhile. */
export const openJournal = Effect.fn("Collect.openJournal")(function* (path: string) {
  const unusable = (cause: unknown): CollectRefused => collectRefusal(`${path} cannot be used: ${cause}`)
  // First: otherwise another process could remove the file between the two.
  yield* Effect.mapError(acquire(path, "sweep broadcast"), ({ message }) => collectRefusal(message))
  const file = yield* Effect.acquireRelease(Effect.try({ try: () => openOwn(path), catch: unusable }), (file) =>
    Effect.sync(() => closeSync(file))
  )
  // Of a broadcast that was refused nothing is left.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => (fstatSync(file).size === 0 ? rmSync(path, { force: true }) : undefined))
  )
  const text = yield* Effect.try({ try: () => readFileSync(file, "utf8"), catch: unusable })
  const { bytes, lines } = wholeLines(text)
  const entries = yield* Effect.forEach(
    lines,
    (line, i) =>
      Effect.mapError(decodeEntry(line), () =>
        collectRefusal(
          `Line ${i + 1} of ${path} is damaged: what was sent cannot be told from it. Restore it from a backup, or make a new plan for the rest.`
        )
      ),
    { concurrency: 1 }
  )
  if (lines.length === 0 && !beginning.startsWith(text.slice(0, beginning.length))) {
    return yield* collectRefusal(`${path} is not a journal: move it away, or name the right file.`)
  }
  yield* Effect.try({ try: () => ftruncateSync(file, bytes), catch: unusable })
  return {
    /** What was there when it was opened. */
    entries,
    /** Is on the disk when it returns. */
    add: (line: JournalLine) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) =>
        Effect.try({
          try: () => addLine(file, JSON.stringify({ ...line, at })),
          catch: (cause) =>
            collectRefusal(
              `${path} could not be written (${cause}): what was sent is under way. Make room, and run this again.`
            )
        })
      )
  }
})
