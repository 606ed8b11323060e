import { Clock, Data, Effect, type Redacted } from "effect"
import { walletContext } from "../Auth/AccountsRepo.ts"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId, EndpointId } from "../Domain/Ids.ts"
import { forgetBodies } from "../Http/IdempotencyRepo.ts"
import {
  fingerprintOf,
  makeSecrets,
  rotated,
  type SecretsShape,
  storedFingerprint,
  wrongMasterKey
} from "../Secrets.ts"
import { type Param, Reader, Tx, Writer } from "../Sql.ts"
import type { SealedPair } from "../Webhooks/queue/EndpointsRepo.ts"
import { contextOf, endpointContext } from "../Webhooks/SigningKeys.ts"

/** The master key cannot be rotated. Nothing was changed. */
export class RotationRefused extends Data.TaggedError("RotationRefused")<{ readonly message: string }> {}

/** A table with sealed BLOB columns. The sealing context names column and row. */
interface SealedTable {
  readonly table: string
  readonly key: ReadonlyArray<string>
  readonly context: (column: string, ...key: ReadonlyArray<string>) => string
}

/**
 * All tables with sealed values. Values of a missing table would be lost with the old key: a test compares the schema.
 */
export const sealedTables: ReadonlyArray<SealedTable> = [
  {
    table: "endpoints",
    key: ["id"],
    context: (column, id) => endpointContext(id as EndpointId, column as keyof SealedPair)
  },
  {
    table: "default_secrets",
    key: ["account_id", "mode"],
    context: (column, account, mode) => contextOf({ account: account as AccountId, mode: mode as Mode }, column)
  },
  {
    table: "account_wallets",
    key: ["account_id", "mode"],
    context: (_, account, mode) => walletContext(account as AccountId, mode as Mode)
  }
]

const rowsAtOnce = 500

const resealValue = (before: SecretsShape, after: SecretsShape, sealed: Uint8Array, context: string) =>
  Effect.try({
    try: () => after.reseal(before, sealed, context),
    catch: (cause) =>
      new RotationRefused({
        message: `Nothing was changed: ${cause instanceof Error ? cause.message : cause}. Restore a backup, or remove what it belongs to`
      })
  })

/** Reseals a table's values, row by row; returns their number. */
const resealTable = (before: SecretsShape, after: SecretsShape, { context, key, table }: SealedTable) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const columns = yield* tx.all<{ name: string }>("SELECT name FROM pragma_table_info(?) WHERE type = 'BLOB'", [
      table
    ])
    const names = columns.map(({ name }) => name)
    const keys = key.join(", ")
    const marks = key.map(() => "?").join(", ")
    let last: ReadonlyArray<string> = key.map(() => "")
    let count = 0
    while (true) {
      const rows = yield* tx.all<Readonly<Record<string, string | Uint8Array | null>>>(
        `SELECT ${keys}, ${names.join(", ")} FROM ${table} WHERE (${keys}) > (${marks}) ORDER BY ${keys} LIMIT ?`,
        [...last, rowsAtOnce]
      )
      for (const row of rows) {
        last = key.map((name) => String(row[name]))
        const values: Array<Param> = []
        for (const name of names) {
          const sealed = row[name]
          if (!(sealed instanceof Uint8Array)) values.push(null)
          else {
            values.push(yield* resealValue(before, after, sealed, context(name, ...last)))
            count += 1
          }
        }
        const set = names.map((name) => `${name} = ?`).join(", ")
        yield* tx.run(`UPDATE ${table} SET ${set} WHERE (${keys}) = (${marks})`, [...values, ...last])
      }
      if (rows.length < rowsAtOnce) return count
    }
  })

/**
 * Reseals all secrets with another master key, in one transaction: at any time the database opens with exactly one of the
 * two keys. The caller holds the instance lock, since a running daemon has the old key in memory. Repeating a completed
 * rotation changes nothing.
 */
export const rotate = Effect.fn("Secrets.rotate")(function* (
  current: Redacted.Redacted<Uint8Array>,
  next: Redacted.Redacted<Uint8Array>
) {
  const reader = yield* Reader
  const writer = yield* Writer
  const [former, fingerprint] = [fingerprintOf(current), fingerprintOf(next)]
  const stored = yield* storedFingerprint(reader)
  if (stored === undefined) {
    return yield* new RotationRefused({ message: "Nothing is sealed yet: give tilld the new master key, and start it" })
  }
  if (stored === fingerprint) return { rotated: false, secrets: 0, fingerprint }
  if (stored !== former) return yield* wrongMasterKey(reader, stored, former)
  const [before, after] = [makeSecrets(current), makeSecrets(next)]
  const now = yield* Clock.currentTimeMillis
  const secrets = yield* writer.write(
    Effect.gen(function* () {
      let count = 0
      for (const table of sealedTables) count += yield* resealTable(before, after, table)
      yield* forgetBodies
      yield* rotated(former, fingerprint, now)
      return count
    })
  )
  return { rotated: true, secrets, fingerprint }
})
