import { createHash } from "node:crypto"
import { closeSync, fsyncSync, openSync, readSync, writeFileSync } from "node:fs"
import Database from "better-sqlite3"
import { iso } from "../lib/moment.ts"
import type { Answer, CopierRequest } from "./childProcess.ts"
import { type DatabaseFacts, damageOf, factsOf, rowsOf } from "./facts.ts"
import { type Manifest, trailerOf } from "./manifest.ts"

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

const blockBytes = 1024 * 1024

/** The size and digest of the file, to whose end the descriptor then points. */
const digest = (file: number) => {
  const hash = createHash("sha256")
  const block = Buffer.allocUnsafe(blockBytes)
  let bytes = 0
  for (let read = readSync(file, block); read > 0; read = readSync(file, block)) {
    hash.update(block.subarray(0, read))
    bytes += read
  }
  return { bytes, sha256: hash.digest("hex") }
}

const manifestOf = (
  request: CopierRequest & { readonly does: "copy" },
  facts: DatabaseFacts
): Omit<Manifest, "rows" | "bytes" | "sha256"> => ({
  tilld: request.version,
  schema: facts.schema,
  madeAt: request.madeAt,
  newest: facts.newest === null ? null : iso(facts.newest),
  installation: facts.installation,
  masterKey: facts.masterKey,
  wallets: facts.wallets.map(({ jump, next, wallet }) => ({
    wallet,
    highestIndex: next + jump === 0 ? null : next + jump - 1
  }))
})

/** Copies, checks the copy, and puts the manifest behind it. `VACUUM INTO` holds one read transaction, and no other lock. */
const copy = (request: CopierRequest & { readonly does: "copy" }): Answer => {
  const { source, target } = request
  closeSync(openSync(target, "wx", 0o600))
  opened(source, (database) => database.prepare("VACUUM INTO ?").run(target))
  const checked = opened(target, (database) => {
    const damage = damageOf(database)
    return damage.length > 0
      ? { damage }
      : { damage, manifest: manifestOf(request, factsOf(database)), rows: rowsOf(database) }
  })
  if (checked.manifest === undefined) return { damage: checked.damage }
  const file = openSync(target, "r+")
  try {
    const manifest: Manifest = { ...checked.manifest, rows: checked.rows, ...digest(file) }
    // All of it: a full disk accepts part of a single write without an error.
    writeFileSync(file, trailerOf(manifest))
    fsyncSync(file)
    return { manifest }
  } finally {
    closeSync(file)
  }
}

const check = (file: string): Answer =>
  opened(file, (database) => {
    const damage = damageOf(database)
    return damage.length > 0 ? { damage } : { facts: factsOf(database) }
  })

const answer = (request: CopierRequest): Answer => {
  try {
    return request.does === "copy" ? copy(request) : check(request.file)
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : ""
    return { error: { code, message: error instanceof Error ? error.message : String(error) } }
  }
}

process.once("message", (request: CopierRequest) => {
  process.send?.(answer(request), () => process.disconnect())
})
