import { Effect } from "effect"
import type { Db } from "./Db.ts"

/**
 * A number that differs after every commit of another connection: data read at this version is still current.
 * https://sqlite.org/pragma.html#pragma_data_version
 */
export const dataVersion = (reader: Db) =>
  Effect.map(reader.get<{ data_version: number }>("PRAGMA data_version"), (row) => row?.data_version ?? 0)
