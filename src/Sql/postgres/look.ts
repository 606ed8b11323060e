import { Effect } from "effect"
import type { SettingsShape, SettingsSource } from "../../Settings.ts"
import { type Db, oneValue } from "../Db.ts"
import { StoreConnection } from "./Connection.ts"
import { type Holder, selectHolder } from "./lease.ts"
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
    const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = ? AND tablename IN ('migrations', 'lease')"
    const isThere = (yield* oneValue<number>(db, tables, [place.schema])) === 2
    return {
      version: Math.floor(Number(yield* setting(db, "server_version_num")) / 10_000),
      encoding: yield* setting(db, "server_encoding"),
      synchronous: yield* setting(db, "synchronous_commit"),
      schema: isThere ? ((yield* oneValue<number>(db, "SELECT max(migration_id) FROM migrations")) ?? 0) : 0,
      holder: isThere ? yield* db.get<Holder>(selectHolder) : undefined
    }
  }).pipe(Effect.scoped)
