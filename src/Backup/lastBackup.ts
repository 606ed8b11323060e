/**
 * When the database was last backed up: a small file beside it, `<database>.last-backup`. It is not a row of the
 * database: a restore would revert it, and a user who may read the database can make a backup without writing to it.
 */
import { readFileSync, renameSync } from "node:fs"
import { Effect, Option, Schema } from "effect"
import { writeAnew } from "../Sql/fileAccess.ts"
import { onDisk } from "./files.ts"

const LastBackup = Schema.Struct({
  /** When the copy was begun: later changes are not in it. */
  madeAt: Schema.DateTimeUtc,
  /** As given; `-` for standard output. */
  file: Schema.String
})
export type LastBackup = typeof LastBackup.Type

const json = Schema.parseJson(LastBackup)

/** The last good backup of the database at this path; undefined where none was made, or its file cannot be read. */
export const lastBackup = (database: string): Effect.Effect<LastBackup | undefined> =>
  Effect.try(() => readFileSync(`${database}.last-backup`, "utf8")).pipe(
    Effect.flatMap(Schema.decodeUnknown(json)),
    Effect.option,
    Effect.map(Option.getOrUndefined)
  )

/** When that was, Unix milliseconds. */
export const lastBackupAt = (database: string): Effect.Effect<number | undefined> =>
  Effect.map(lastBackup(database), (last) => last?.madeAt.epochMillis)

/** How far NTP may ordinarily set a clock back. Milliseconds. */
const usualStep = 60_000

/**
 * Milliseconds since the last good backup. A backup dated ahead of the clock was made while that was wrong, and may be
 * of any age: it counts as older than every bound.
 */
export const backupAge = (last: number, now: number): number =>
  last - now > usualStep ? Number.POSITIVE_INFINITY : Math.max(0, now - last)

export const recordBackup = (database: string, made: LastBackup) =>
  Effect.gen(function* () {
    const text = yield* Effect.orDie(Schema.encode(json)(made))
    const file = `${database}.last-backup`
    yield* onDisk(`The time of the backup cannot be noted in ${file}`, () => {
      const partial = `${file}.${process.pid}.partial`
      writeAnew(partial, `${text}\n`)
      renameSync(partial, file)
    })
  })
