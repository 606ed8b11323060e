import { createHash } from "node:crypto"
import { Effect, Exit, Scope } from "effect"
import type { StorePlace } from "../../src/Sql/postgres/Connection.ts"
import { makeReader } from "../../src/Sql/postgres/layer.ts"
import { presentHistory } from "../../src/Sql/postgres/lease.ts"
import { makeTransactions } from "../../src/Sql/postgres/transactions.ts"
import { login, template } from "../lib/postgres.ts"
import { SyncClient } from "../lib/syncPostgres.ts"
import type { Engine, Rows, Store } from "./Store.ts"

/** `kept` has the same tables as `tilld`, for a copy of its rows. */
const [own, kept] = ["tilld", "kept"]

const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => Number(text === "t"),
  20: Number,
  23: Number,
  1700: Number
}
const types = { getTypeParser: (oid: number) => parsers[oid] ?? ((text: string) => text) }

/** A connection that only reads, or administers. */
const connection = (port: number, database: string): Rows => {
  const client = new SyncClient({ ...login, port, database, types } as never)
  void client.connect()
  const all = <Row>(text: string): ReadonlyArray<Row> => {
    let rows: ReadonlyArray<Row> = []
    client.query({ text }, (cause, result) => {
      if (cause !== null) throw cause
      rows = (result as { readonly rows: ReadonlyArray<Row> }).rows
    })
    return rows
  }
  all(`SET search_path TO ${own}`)
  return { all, close: () => client.end() }
}

/** Each table with the columns that a row is given with. */
const tablesOf = `SELECT table_name AS name, string_agg(column_name, ', ') AS columns FROM information_schema.columns
  WHERE table_schema = '${own}' AND is_generated = 'NEVER' AND table_name NOT IN ('lease', 'last_commit', 'migrations') GROUP BY table_name`
const sequencesOf = `SELECT sequencename AS name FROM pg_sequences WHERE schemaname = '${own}'`

interface Found {
  readonly name: string
  readonly columns?: string
  readonly history?: string
}

/** Databases of a server that has the template of tests. */
export const makeServerEngine = (port: number): Engine => {
  const nameOf = (path: string) => `sim_${createHash("sha256").update(path).digest("hex").slice(0, 16)}`
  const within = (database: string, statements: ReadonlyArray<string>) => {
    const { all, close } = connection(port, database)
    try {
      return statements.flatMap((statement) => all<Found>(statement))
    } finally {
      close()
    }
  }
  const begin = (path: string, from: string) => {
    within("postgres", [`CREATE DATABASE ${nameOf(path)} TEMPLATE ${from} STRATEGY FILE_COPY`])
  }
  /** The rows of one schema become those of another. */
  const copyRows = (path: string, from: string, to: string) => {
    const database = nameOf(path)
    const tables = within(database, [tablesOf])
    const sequences = within(database, [sequencesOf]).map(({ name }) => name)
    within(database, [
      // Without triggers and foreign keys.
      "SET session_replication_role = replica",
      `TRUNCATE ${tables.map(({ name }) => `${to}.${name}`).join(", ")}`,
      ...tables.map(
        ({ columns, name }) =>
          `INSERT INTO ${to}.${name} (${columns}) OVERRIDING SYSTEM VALUE SELECT ${columns} FROM ${from}.${name}`
      ),
      ...sequences.map((name) => `SELECT setval('${to}.${name}', last_value, is_called) FROM ${from}.${name}`)
    ])
  }
  const open = (path: string): Store => {
    const place: StorePlace = {
      client: { ...login, port, database: nameOf(path) },
      makeClient: (config) => new SyncClient(config) as never,
      schema: own
    }
    const [{ history = "" } = {}] = within(nameOf(path), [`SELECT ${presentHistory} AS history`])
    const lease = { epoch: 0, history, lost: Effect.never }
    const make = () => {
      const scope = Effect.runSync(Scope.make())
      const opened = Effect.all([makeTransactions(place, lease), makeReader(place, lease.lost, 1)])
      const [transactions, reader] = Effect.runSync(Scope.extend(opened, scope))
      return { scope, transactions, reader }
    }
    const end = () => void Effect.runFork(Scope.close(present.scope, Exit.void))
    let present = make()
    return {
      get transactions() {
        return present.transactions
      },
      get reader() {
        return present.reader
      },
      // PostgreSQL undoes what a connection has not committed when it ends.
      abandon: () => {
        end()
        present = make()
      },
      close: end
    }
  }
  return {
    make: (path, statements, from) => {
      begin(path, from === undefined ? template : nameOf(from))
      within(nameOf(path), statements)
    },
    begin: (path, from) => begin(path, nameOf(from)),
    open,
    rows: (path) => connection(port, nameOf(path)),
    keep: (path) => copyRows(path, own, kept),
    putBack: (path) => copyRows(path, kept, own),
    remove: (path) => void within("postgres", [`DROP DATABASE IF EXISTS ${nameOf(path)} WITH (FORCE)`])
  }
}
