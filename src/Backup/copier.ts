import { closeSync, fstatSync, ftruncateSync, openSync, statSync } from "node:fs"
import Database from "better-sqlite3"
import type { Answer, CopierRequest } from "./childProcess.ts"
import { damageOf, factsOf } from "./facts.ts"
import { brokenSeal, readSeal, writeSeal } from "./seal.ts"

// The child process of `childProcess.ts`, for blocking reads of a whole database. It answers one request.

// Without a handler Node opens its inspector, through which every local user reads this process's memory.
process.on("SIGUSR1", () => undefined)

const opened = <A>(path: string, use: (database: Database.Database) => A): A => {
  const database = new Database(path, { readonly: true, fileMustExist: true, timeout: 10_000 })
  try {
    return use(database)
  } finally {
    database.close()
  }
}

const withFile = <A>(path: string, flags: string, use: (file: number) => A): A => {
  const file = openSync(path, flags)
  try {
    return use(file)
  } finally {
    closeSync(file)
  }
}

/** The facts of a sound database, and its size by its header. */
const examine = (path: string) =>
  opened(path, (database) => {
    const bytes =
      Number(database.pragma("page_count", { simple: true })) * Number(database.pragma("page_size", { simple: true }))
    const there = statSync(path).size
    const damage = there < bytes ? [`cut short: it has ${there} of ${bytes} bytes`] : damageOf(database)
    return damage.length > 0 ? { damage } : { bytes, facts: factsOf(database) }
  })

/** Copies, checks the copy and seals it. `VACUUM INTO` holds one read transaction, and no other lock. */
const copy = ({ madeAt, source, target }: CopierRequest & { readonly does: "copy" }): Answer => {
  closeSync(openSync(target, "wx", 0o600))
  opened(source, (database) => database.prepare("VACUUM INTO ?").run(target))
  const found = examine(target)
  if (found.damage !== undefined) return found
  return { ...found, seal: withFile(target, "a+", (file) => writeSeal(file, madeAt)) }
}

/** Checks a copy, and takes off what follows the database in it. */
const check = (path: string): Answer =>
  withFile(path, "r+", (file) => {
    const seal = readSeal(file)
    const broken = seal && brokenSeal(file, seal)
    if (broken !== undefined) return { damage: [broken] }
    const found = examine(path)
    if (found.damage !== undefined) return found
    if (fstatSync(file).size > found.bytes) ftruncateSync(file, found.bytes)
    return { ...found, seal }
  })

/** Whether a copy has the bytes that were found sound when it was made. Changes nothing. */
const verify = (path: string): Answer =>
  withFile(path, "r", (file) => {
    const seal = readSeal(file)
    const broken = seal === undefined ? "cut short: its last line is not that of a backup" : brokenSeal(file, seal)
    return { damage: broken === undefined ? [] : [broken] }
  })

const answer = (request: CopierRequest): Answer => {
  try {
    if (request.does === "copy") return copy(request)
    return request.does === "check" ? check(request.file) : verify(request.file)
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : ""
    return { error: { code, message: error instanceof Error ? error.message : String(error) } }
  }
}

process.once("message", (request: CopierRequest) => {
  process.send?.(answer(request), () => process.disconnect())
})
