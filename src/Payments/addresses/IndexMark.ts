import { createHash } from "node:crypto"
import {
  closeSync,
  constants,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeSync
} from "node:fs"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import type { SettingsShape } from "../../Settings.ts"
import { StoreUnusable } from "../../Sql.ts"

/**
 * The mark is a small file outside the database's folder. It tells the database that was last written here from an older
 * copy of it, which a copy of the whole folder would bring back without a trace. `numbering.ts` owns it.
 *
 * Its numbers never exceed what the database has committed, since they are written after the commit: a mark that is ahead
 * means that an older copy was restored. A crash, or a power cut, leaves it behind, with a token of the database.
 */
const Mark = Schema.Struct({
  /** Of the database's last start: the one before too, while that start is not committed. */
  tokens: Schema.Array(Schema.String),
  /** The next index of every wallet, by fingerprint. */
  wallets: Schema.Record({ key: Schema.String, value: Schema.NonNegativeInt }),
  /** For people only. */
  database: Schema.String
})
export type Mark = typeof Mark.Type

const decode = Schema.decodeUnknownOption(Schema.parseJson(Mark))

type Place = SettingsShape["database"]

/** Where the mark of a database is: databases may share the folder. */
export const markFile = ({ markFolder, path }: Place): string =>
  join(markFolder, `numbering-${createHash("sha256").update(path).digest("hex").slice(0, 16)}.json`)

const isMissing = (error: unknown) => error instanceof Error && "code" in error && error.code === "ENOENT"

/** The mark, undefined where it is missing or unreadable text. Throws where the file system refuses. */
export const readMark = (place: Place): Mark | undefined => {
  try {
    return Option.getOrUndefined(decode(readFileSync(markFile(place), "utf8")))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export interface IndexMark {
  /** What was there when it was opened. */
  readonly found: Mark | undefined
  /** Writes it at once. `onFailure` hears of it where that fails: nothing stops for it. */
  readonly write: (tokens: ReadonlyArray<string>, wallets: Mark["wallets"]) => void
  /** Writes it, and waits for the disk. Without it the next start could prove nothing, so that there is none. */
  readonly begin: (tokens: ReadonlyArray<string>, wallets: Mark["wallets"]) => Effect.Effect<void, StoreUnusable>
  /** Waits for the disk beside everything else. */
  readonly sync: Effect.Effect<void>
}

/**
 * Every number has its place, however long it gets, and a shorter text is as long as a longer one: what a power cut leaves of
 * two texts is readable, with some numbers behind.
 */
const textOf = ({ database, tokens, wallets }: Mark): string => {
  const numbers = Object.entries(wallets).map(([wallet, next]) => `"${wallet}":${String(next).padStart(11)}`)
  const head = `{"database":${JSON.stringify(database)},"wallets":{${numbers.join(",")}},`
  return `${head}"tokens":${JSON.stringify(tokens)}}`.padEnd(head.length + 128).concat("\n")
}

const open = (place: Place) => {
  mkdirSync(place.markFolder, { recursive: true, mode: 0o700 })
  const found = readMark(place)
  const file = openSync(markFile(place), constants.O_RDWR | constants.O_CREAT, 0o600)
  const folder = openSync(place.markFolder, "r")
  fsyncSync(folder)
  closeSync(folder)
  return { found, file }
}

const attempt = <A>({ markFolder }: Place, execute: () => A) =>
  Effect.try({
    try: execute,
    catch: (cause) =>
      new StoreUnusable({
        message:
          `The mark of the address numbering cannot be kept in ${markFolder} (${cause}): make the folder writable for ` +
          "tilld, or give another one as database.mark_folder"
      })
  })

/** Opens the mark of a database until the scope closes. */
export const openIndexMark = (place: Place, onFailure: (cause: unknown) => void) =>
  Effect.acquireRelease(
    attempt(place, () => open(place)),
    ({ file }) =>
      Effect.sync(() => {
        fsyncSync(file)
        closeSync(file)
      })
  ).pipe(
    Effect.map(({ file, found }): IndexMark => {
      const put = (tokens: ReadonlyArray<string>, wallets: Mark["wallets"]) =>
        writeSync(file, textOf({ tokens, wallets, database: place.path }), 0)
      return {
        found,
        begin: (tokens, wallets) =>
          attempt(place, () => {
            ftruncateSync(file, put(tokens, wallets))
            fsyncSync(file)
          }),
        write: (tokens, wallets) => {
          try {
            put(tokens, wallets)
          } catch (cause) {
            onFailure(cause)
          }
        },
        sync: Effect.async<void>((resume) =>
          fdatasync(file, (cause) => {
            if (cause !== null) onFailure(cause)
            resume(Effect.void)
          })
        )
      }
    })
  )
