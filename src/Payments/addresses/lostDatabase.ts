/**
 * Tells a database that was lost from one that was never made. Its index mark is outside of its folder, and proves that
 * addresses were given out from it: an empty database in its place would leave nobody to watch them.
 */
import { statSync } from "node:fs"
import { Effect, Either } from "effect"
import type { SettingsShape } from "../../Settings.ts"
import { StoreUnusable } from "../../Sql.ts"
import { furthestIn, unitFolder } from "./IndexMark.ts"

/** How many addresses were given out or skipped, as the marks of this database say. 0 where none can be read. */
const givenOut = ({ markFolder, path }: SettingsShape["database"]): number =>
  Object.values(furthestIn([markFolder, unitFolder], path)).reduce((sum, next) => sum + next, 0)

/** That the file is missing or empty although addresses were given out from it; undefined where it is as it should be. */
export const lossOf = (place: SettingsShape["database"]): string | undefined => {
  const size = Either.try(() => statSync(place.path, { throwIfNoEntry: false })?.size)
  // What cannot be looked at is not missing: whoever opens it says why.
  if (Either.isLeft(size) || (size.right ?? 0) > 0) return undefined
  const addresses = givenOut(place)
  return addresses === 0
    ? undefined
    : `the database ${place.path} is ${size.right === undefined ? "missing" : "empty"} although ${addresses} addresses were given out from it`
}

/** Refuses to make a database in the place of one that was lost. */
export const refuseLost = (place: SettingsShape["database"]): Effect.Effect<void, StoreUnusable> =>
  Effect.suspend(() => {
    const loss = lossOf(place)
    return loss === undefined
      ? Effect.void
      : new StoreUnusable({
          message: `T${loss.slice(1)}: restore a backup with tilld restore FILE; to begin with an empty database, start it once with tilld serve --new-database`
        })
  })
