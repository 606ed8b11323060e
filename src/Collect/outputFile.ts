import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { Effect } from "effect"
import { linked, syncToDisk } from "../Backup/files.ts"
import { type CollectRefused, collectRefusal } from "./CollectRefused.ts"

const exists = (path: string) => collectRefusal(`${path} exists already: name another file, or --force replaces it.`)

/** Refuses a file that exists, before the work for it is done. */
export const checkOutput = (path: string, force: boolean): Effect.Effect<void, CollectRefused> =>
  Effect.suspend(() => (!force && existsSync(path) ? Effect.fail(exists(path)) : Effect.void))

/** Takes the name before it is used: unlike rename alone, this replaces no file that was made meanwhile. */
const renameToUnused = (partial: string, path: string) => {
  closeSync(openSync(path, "wx", 0o600))
  renameSync(partial, path)
}

/** Writes a file whole or not at all, readable by its owner only, and over another one with `force` only. */
export const writeOutput = (path: string, text: string, force: boolean): Effect.Effect<void, CollectRefused> => {
  const partial = `${path}.${process.pid}.partial`
  return Effect.try({
    try: () => {
      const file = openSync(partial, "wx", 0o600)
      try {
        writeFileSync(file, text)
        fsyncSync(file)
        if (force) renameSync(partial, path)
        // Memory sticks with FAT have no links.
        else if (!linked(partial, path)) renameToUnused(partial, path)
      } finally {
        closeSync(file)
        rmSync(partial, { force: true })
      }
      syncToDisk(dirname(path))
    },
    catch: (cause) => {
      const {
        code,
        message,
        path: taken,
        syscall
      }: NodeJS.ErrnoException = cause instanceof Error ? cause : new Error(String(cause))
      if (code !== "EEXIST") return collectRefusal(`${path} cannot be written: ${message}`)
      return syscall === "open" && taken === partial
        ? collectRefusal(`${partial} exists already, left by a run that was cut off: remove it, and start again.`)
        : exists(path)
    }
  })
}
