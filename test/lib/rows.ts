import { Effect } from "effect"
import { Reader, Tx, Writer } from "../../src/Sql.ts"

type Params = ReadonlyArray<string | number | null>

/** All rows of a query. */
export const rows = <A extends object>(sql: string, ...params: Params) =>
  Effect.flatMap(Reader, (reader) => reader.all<A>(sql, params))

/** Runs a command in a transaction of its own. */
export const write = <A, E>(command: Effect.Effect<A, E, Tx>) =>
  Effect.flatMap(Writer, (writer) => writer.write(command))

/** Runs SQL as a command of the writer. */
export const change = (sql: string, ...params: Params) => write(Effect.flatMap(Tx, (tx) => tx.run(sql, params)))
