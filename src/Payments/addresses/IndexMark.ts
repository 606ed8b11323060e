/**
 * The index mark: a small file outside the database's folder, with the next index of every wallet. It distinguishes the
 * database that was last written here from an older copy, which restoring a copy of the whole folder would bring back
 * without a trace. `numbering.ts` owns it.
 *
 * Its indexes never exceed those that the database has committed, since it is written after the commit: a mark that is ahead
 * means that an older copy of the database was restored. A crash or a power cut leaves the mark behind, with a token that
 * the database has.
 *
 * The marks of other databases on this machine count too: the counter of a wallet belongs to the wallet. And a mark tells a lost
 * database from one never made: an empty one in its place would leave addresses unwatched.
 */
import { createHash } from "node:crypto"
import {
  closeSync,
  constants,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeSync
} from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Array as Arr, Effect, Either, Option, Order, Schema } from "effect"
import type { SettingsShape } from "../../Settings.ts"
import { StoreUnusable, unusableFiles } from "../../Sql/StoreUnusable.ts"
import type { StoreUnavailable } from "../../Sql.ts"

/** Indexes that each wallet jumps over where the mark does not prove that the numbering may continue. */
export const blindJump = 1000

const Mark = Schema.Struct({
  /** The token of the database's last start; also the one before, until that start is committed. */
  tokens: Schema.Array(Schema.String),
  /** The next index of every wallet, by fingerprint. */
  wallets: Schema.Record({ key: Schema.String, value: Schema.NonNegativeInt }),
  /** The path of the database, for messages. */
  database: Schema.String
})
export type Mark = typeof Mark.Type

const decode = Schema.decodeUnknownOption(Schema.parseJson(Mark))

type Place = SettingsShape["database"]

/** The path of the mark of a database. Databases may share the folder: the name has a hash of the database path. */
export const markFile = ({ markFolder, path }: Place): string =>
  join(markFolder, `numbering-${createHash("sha256").update(path).digest("hex").slice(0, 16)}.json`)

const isMissing = (error: unknown) => error instanceof Error && "code" in error && error.code === "ENOENT"

/** The mark in this file; undefined where it is missing or cannot be parsed. Throws where the file system refuses. */
export const markAt = (file: string): Mark | undefined => {
  try {
    return Option.getOrUndefined(decode(readFileSync(file, "utf8")))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** The mark of a database, as `markAt` gives it. */
export const readMark = (place: Place): Mark | undefined => markAt(markFile(place))

/** `CacheDirectory=` of the unit: a command has another default folder, since that depends on the environment. */
export const unitFolder = "/var/cache/tilld"

/** The furthest next index of every wallet. */
export const furthestOf = (all: ReadonlyArray<Mark["wallets"]>): Mark["wallets"] => {
  const furthest: Record<string, number> = {}
  for (const [wallet, next] of all.flatMap(Object.entries<number>)) {
    furthest[wallet] = Math.max(furthest[wallet] ?? 0, next)
  }
  return furthest
}

/** The same, of the marks that the database has in these folders, as far as they can be read. */
export const furthestIn = (folders: ReadonlyArray<string>, path: string): Mark["wallets"] =>
  furthestOf(
    folders.map((markFolder) => Either.getOrUndefined(Either.try(() => readMark({ path, markFolder })))?.wallets ?? {})
  )

export interface IndexMark {
  /** The mark as it was when it was opened. */
  readonly found: Mark | undefined
  /** Writes it at once. The first failure goes to `onFailure`; none stops anything. */
  readonly write: (tokens: ReadonlyArray<string>, wallets: Mark["wallets"]) => void
  /** Writes it and syncs it to disk. It fails where that fails: without a mark the next start could prove nothing. */
  readonly begin: (
    tokens: ReadonlyArray<string>,
    wallets: Mark["wallets"]
  ) => Effect.Effect<void, StoreUnusable | StoreUnavailable>
  /** Syncs it to disk, without blocking the event loop. */
  readonly sync: Effect.Effect<void>
  /** Why it is behind; undefined after a good write. */
  readonly failure: () => string | undefined
}

/**
 * Indexes and tokens are padded, so that every text for the same wallets has the same length and each index its place:
 * a mixture of two texts, as after a power cut, is readable, with some indexes behind.
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

const attempt = <A>(place: Place, execute: () => A) =>
  Effect.try({
    try: execute,
    catch: (cause) =>
      unusableFiles(
        cause,
        [place.markFolder, markFile(place)],
        `The mark of the address numbering cannot be kept in ${place.markFolder}, or in another database.mark_folder`
      )
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
      let failure: string | undefined
      const failed = (cause: unknown) => {
        if (failure === undefined) onFailure(cause)
        failure = `the index mark cannot be written in ${place.markFolder}: ${cause instanceof Error ? cause.message : cause}`
      }
      return {
        found,
        failure: () => failure,
        begin: (tokens, wallets) =>
          attempt(place, () => {
            ftruncateSync(file, put(tokens, wallets))
            fsyncSync(file)
          }),
        write: (tokens, wallets) => {
          try {
            put(tokens, wallets)
            failure = undefined
          } catch (cause) {
            failed(cause)
          }
        },
        sync: Effect.async<void>((resume) =>
          fdatasync(file, (cause) => {
            if (cause !== null) failed(cause)
            resume(Effect.void)
          })
        )
      }
    })
  )

/** How far another database has handed out addresses of a wallet. */
export interface OtherUse {
  /** The wallet's fingerprint. */
  readonly wallet: string
  /** The path of that database. */
  readonly database: string
  /** Its next index. */
  readonly next: number
}

const markName = /^numbering-[0-9a-f]{16}\.json$/

/** Unreadable marks are left out: the database's own mark, in the same folder, is refused then. */
const namesIn = (folder: string): ReadonlyArray<string> =>
  Either.getOrElse(
    Either.try(() => readdirSync(folder)),
    () => []
  ).filter((name) => markName.test(name))

/** The marks of all databases but the one at this path. */
const othersIn = (folders: ReadonlyArray<string>, path: string): ReadonlyArray<Mark> => {
  const own = basename(markFile({ path, markFolder: "" }))
  return folders.flatMap((folder) =>
    namesIn(folder)
      .filter((name) => name !== own)
      .flatMap((name) =>
        Either.getOrElse(
          Either.try(() => Arr.fromNullable(markAt(join(folder, name)))),
          () => []
        )
      )
  )
}

/**
 * The wallets that another database has used further than the one at this path: of each, the furthest use.
 *
 * @param known the next index of each wallet of this database, by fingerprint
 */
export const overtakenIn = (
  folders: ReadonlyArray<string>,
  path: SettingsShape["database"]["path"],
  known: Mark["wallets"]
): ReadonlyMap<string, OtherUse> => {
  const uses = othersIn(folders, path).flatMap(({ database, wallets }) =>
    Object.entries(wallets).map(([wallet, next]): OtherUse => ({ wallet, database, next }))
  )
  const ahead = uses.filter(({ next, wallet }) => next > (known[wallet] ?? 0))
  return new Map(Arr.sortWith(ahead, ({ next }) => next, Order.number).map((use) => [use.wallet, use]))
}

/** How many addresses were given out or skipped, as the marks of this database say. 0 where none can be read. */
const givenOut = ({ markFolder, path }: SettingsShape["database"]): number =>
  Object.values(furthestIn([markFolder, unitFolder], path)).reduce((sum, next) => sum + next, 0)

/** The error of a missing or empty file from which addresses were given out; undefined where there is no such loss. */
export const lossOf = (place: SettingsShape["database"]): string | undefined => {
  const size = Either.try(() => statSync(place.path, { throwIfNoEntry: false })?.size)
  // An inaccessible file is not missing: the code that opens it says why.
  if (Either.isLeft(size) || (size.right ?? 0) > 0) return undefined
  const addresses = givenOut(place)
  return addresses === 0
    ? undefined
    : `the database ${place.path} is ${size.right === undefined ? "missing" : "empty"} although ${addresses} addresses were given out from it`
}

/** Refuses to create a database in the place of a lost one. */
export const refuseLost = (place: SettingsShape["database"]): Effect.Effect<void, StoreUnusable> =>
  Effect.suspend(() => {
    const loss = lossOf(place)
    return loss === undefined
      ? Effect.void
      : new StoreUnusable({
          message: `T${loss.slice(1)}: restore a backup with tilld restore FILE; to begin with an empty database, start it once with tilld serve --new-database`
        })
  })

/** `StateDirectory=` of the unit, which makes it at its start. */
const unitState = "/var/lib/tilld"

/** The database's folder is missing. */
export interface MissingFolder {
  readonly finding: string
  readonly remedy: string
  /** The unit makes it. */
  readonly isUnits: boolean
}

/** The missing folder of the database: a wrong path, or a disk that is not mounted. */
export const missingFolder = (path: string): MissingFolder | undefined => {
  const folder = dirname(resolve(path))
  const found = Either.try(() => statSync(folder, { throwIfNoEntry: false }))
  // An inaccessible folder is not missing.
  if (Either.isLeft(found) || found.right !== undefined) return undefined
  const isUnits = folder === unitState
  return {
    finding: `the folder ${folder} of database.path does not exist`,
    remedy: isUnits
      ? "the unit makes it at its start; without the unit, make it, or correct database.path"
      : "correct database.path, mount its disk, or make the folder, for the user that tilld runs as",
    isUnits
  }
}

/** Refuses to create the folder of a database: with a wrong path, a second database would begin there. */
export const refuseMissingFolder = (place: SettingsShape["database"]): Effect.Effect<void, StoreUnusable> =>
  Effect.suspend(() => {
    const missing = missingFolder(place.path)
    if (missing === undefined) return Effect.void
    const loss = lossOf(place)
    const finding = loss === undefined ? missing.finding : `${missing.finding}, and ${loss}`
    return new StoreUnusable({ message: `T${finding.slice(1)}: ${missing.remedy}` })
  })
