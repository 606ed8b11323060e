import { existsSync, writeFileSync } from "node:fs"
import { Effect } from "effect"
import { onDisk, partialOf, publish } from "../Backup/files.ts"
import { type CollectRefused, collectRefusal } from "./CollectRefused.ts"

/** Refuses a file that exists, before the work for it is done. */
export const checkOutput = (path: string, force: boolean): Effect.Effect<void, CollectRefused> =>
  Effect.suspend(() =>
    !force && existsSync(path)
      ? collectRefusal(`${path} exists already: name another file, or --force replaces it.`)
      : Effect.void
  )

/** Writes a file whole or not at all, readable by its owner only, and over another one with `force` only. */
export const writeOutput = (path: string, text: string, force: boolean): Effect.Effect<void, CollectRefused> =>
  Effect.gen(function* () {
    const partial = yield* partialOf(path)
    yield* onDisk(`${path} cannot be written`, () =>
      writeFileSync(partial, text, { mode: 0o600, flag: "wx", flush: true })
    )
    yield* publish(partial, path, force)
  }).pipe(
    Effect.scoped,
    Effect.mapError(({ message }) => collectRefusal(message))
  )
