import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs"
import { Effect, Option, Schema } from "effect"

/** The next index of every wallet, by fingerprint. */
type Marks = Record<string, number>

const decode = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.NonNegativeInt }))
)

/**
 * The small file beside the database that remembers how far each wallet's numbering has come: it tells a restored older
 * copy of the database from the newest one, so that no address is handed out twice.
 *
 * It is written at once after a commit, and synchronised when it is made or mended, and when it is closed. A crash of the
 * process leaves it right; a power cut may leave it behind the database, which is on disk by then and then holds the higher
 * number.
 */
export interface IndexMark {
  /** The file's number, or undefined when it does not know the wallet (or the file was missing). */
  readonly next: (fingerprint: string) => number | undefined
  readonly note: (fingerprint: string, next: number) => void
  /** Puts what was noted into the file. */
  readonly write: () => void
}

/** `onFailure` hears of a write that failed: the database has the numbers all the same, so nothing stops for it. */
export const openIndexMark = (databasePath: string, onFailure: (cause: unknown) => void) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const path = `${databasePath}.index`
      const found = existsSync(path) ? readFileSync(path, "utf8") : undefined
      const marks: Marks = { ...Option.getOrElse(decode(found), () => ({})) }
      const file = openSync(path, found === undefined ? "w" : "r+", 0o640)
      const text = () => `${JSON.stringify(marks)}\n`
      // Numbers only grow, and so does the text: nothing of an older one is left behind it.
      const write = () => writeSync(file, text(), 0)
      // A disk may take a tenth of a second, which a start has no need to wait for when there is nothing to change.
      if (found !== text()) {
        ftruncateSync(file, write())
        fsyncSync(file)
      }
      const mark: IndexMark = {
        next: (fingerprint) => marks[fingerprint],
        note: (fingerprint, next) => {
          marks[fingerprint] = Math.max(next, marks[fingerprint] ?? 0)
        },
        write: () => {
          try {
            write()
          } catch (cause) {
            onFailure(cause)
          }
        }
      }
      return { mark, file }
    }),
    ({ file }) =>
      Effect.sync(() => {
        fsyncSync(file)
        closeSync(file)
      })
  ).pipe(Effect.map(({ mark }) => mark))
