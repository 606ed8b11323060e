/** Backups of one database that are kept in a folder by their number. Other files there are left alone. */
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { DateTime, Effect, Option } from "effect"
import { iso } from "../Domain/Timestamp.ts"
import { isRunning, onDisk, removePartials } from "./files.ts"

/** In the name, the same in all backups of a database: others in the folder have another one. */
const mark = (installation: string): string => `tilld-${installation.slice(0, 8)}-`

/** The name of a backup made at `at`, Unix milliseconds. */
export const backupName = (installation: string, at: number, isEncrypted: boolean): string =>
  `${mark(installation)}${iso(at).replace(/[-:]|\.\d+/g, "")}.db${isEncrypted ? ".age" : ""}`

const timeForm = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db(\.age)?$/

interface Kept {
  readonly name: string
  /** Unix milliseconds. */
  readonly at: number
}

const keptOf = (name: string, installation: string): ReadonlyArray<Kept> => {
  if (!name.startsWith(mark(installation))) return []
  const time = timeForm.exec(name.slice(mark(installation).length))
  if (time === null) return []
  const [, year, month, day, hour, minute, second] = time
  return Option.match(DateTime.make(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`), {
    onNone: () => [],
    onSome: (at) => [{ name, at: DateTime.toEpochMillis(at) }]
  })
}

/** The database's backups in the folder, newest first, by the time in their names. */
export const keptIn = (folder: string, installation: string) =>
  onDisk(`The backups in ${folder} cannot be listed`, () =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .flatMap(({ name }) => keptOf(name, installation))
      .sort((a, b) => b.at - a.at || (a.name < b.name ? 1 : -1))
  )

/**
 * Removes all backups of the database but `made`, which is whole, and the newest others, `keep` in total. Gives the
 * names of those removed, and those dated after `now`, Unix milliseconds: made while the clock was ahead, they would
 * keep their places until then. They are not counted, and stay.
 */
export const removeOld = (folder: string, installation: string, keep: number, made: string, now: number) =>
  Effect.gen(function* () {
    const others = (yield* keptIn(folder, installation)).filter(({ name }) => name !== made)
    const namesOf = (kept: typeof others) => kept.map(({ name }) => name)
    const old = namesOf(others.filter(({ at }) => at <= now).slice(keep - 1))
    yield* onDisk(`Old backups in ${folder} cannot be removed`, () => {
      for (const name of old) rmSync(join(folder, name), { force: true })
    })
    yield* removePartials(folder, (whole, pid) => keptOf(whole, installation).length > 0 && !isRunning(pid))
    return { removed: old, ahead: namesOf(others.filter(({ at }) => at > now)) }
  })
