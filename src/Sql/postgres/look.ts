import { Clock, Effect } from "effect"
import type { SettingsShape, SettingsSource } from "../../Settings.ts"
import { type Db, oneValue } from "../Db.ts"
import { StoreConnection } from "./Connection.ts"
import { type Holder, selectHolder } from "./lease.ts"
import { selectReplicas } from "./nodes.ts"
import { placeOf } from "./place.ts"

const setting = (db: Db, key: string) =>
  Effect.map(oneValue<string>(db, "SELECT current_setting(?)", [key]), (text = "") => text)

/** What a server is, and which node works with the store in it. Changes nothing. */
export const lookAt = (postgres: NonNullable<SettingsShape["postgres"]>, env: SettingsSource["env"]) =>
  Effect.gen(function* () {
    const place = yield* placeOf(postgres, env)
    const connection = yield* Effect.acquireRelease(StoreConnection.open(place), (opened) =>
      Effect.sync(() => opened.close())
    )
    const db = connection.db()
    const may = `SELECT CASE WHEN to_regnamespace(quote_ident(?)) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
      ELSE has_schema_privilege(quote_ident(?), 'CREATE') AND has_schema_privilege(quote_ident(?), 'USAGE') END`
    const mayMake = (yield* oneValue<number>(db, may, [place.schema, place.schema, place.schema])) === 1
    const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = ? AND tablename IN ('migrations', 'lease')"
    const isThere = mayMake && (yield* oneValue<number>(db, tables, [place.schema])) === 2
    const asked = yield* Clock.currentTimeMillis
    const theirs =
      (yield* oneValue<number>(db, "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)")) ?? 0
    const answered = yield* Clock.currentTimeMillis
    return {
      /** Whether this user may make tables there. */
      mayMake,
      /** Milliseconds by which its clock is ahead of this machine's. */
      ahead: theirs - (asked + answered) / 2,
      replicas: (yield* db.all(selectReplicas)).length,
      isSynchronous: (yield* setting(db, "synchronous_standby_names")) !== "",
      version: Math.floor(Number(yield* setting(db, "server_version_num")) / 10_000),
      encoding: yield* setting(db, "server_encoding"),
      synchronous: yield* setting(db, "synchronous_commit"),
      schema: isThere ? ((yield* oneValue<number>(db, "SELECT max(migration_id) FROM migrations")) ?? 0) : 0,
      holder: isThere ? yield* db.get<Holder>(selectHolder) : undefined
    }
  }).pipe(Effect.scoped)
