/** A file that a command writes its result to: whole or not at all, and over another one only where that is asked for. */
import { existsSync, statSync, writeFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { Effect } from "effect"
import { onDisk, PathRefused, partialOf, publish, writableFolder } from "./files.ts"

/** Refuses a file that exists or cannot be made, before the work for it is done. */
export const checkOutput = Effect.fn("Backup.checkOutput")(function* (path: string, force: boolean) {
  if (path === "") return yield* new PathRefused({ message: "The output file has no name: was a variable not set?" })
  const there = existsSync(path) ? statSync(path) : undefined
  if (there?.isDirectory()) return yield* new PathRefused({ message: `${path} is a folder: name a file in it` })
  if (!force && there !== undefined) {
    return yield* new PathRefused({ message: `${path} exists already: name another file, or --force replaces it` })
  }
  yield* writableFolder(dirname(resolve(path)), "Nothing can be written")
})

/** Writes it, readable by its owner only. */
export const writeOutput = Effect.fn("Backup.writeOutput")(function* (path: string, text: string, force: boolean) {
  const partial = yield* partialOf(path)
  yield* onDisk(`${path} cannot be written`, () =>
    writeFileSync(partial, text, { mode: 0o600, flag: "wx", flush: true })
  )
  yield* publish(partial, path, force)
}, Effect.scoped)
