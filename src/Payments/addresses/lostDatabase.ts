/**
 * Distinguishes a lost database from one never made, and a missing folder from one without a database. Its index mark
 * is outside of its folder, and proves that addresses were given out from it: an empty database in its place would
 * leave them unwatched.
 */
import { statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { Effect, Either } from "effect"
import type { SettingsShape } from "../../Settings.ts"
import { realFile } from "../../Sql/fileAccess.ts"
import { StoreUnusable } from "../../Sql.ts"
import { furthestIn, unitFolder } from "./IndexMark.ts"

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
  const folder = dirname(resolve(realFile(path)))
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
