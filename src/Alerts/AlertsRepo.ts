import { Effect, Either, Schema } from "effect"
import { type Db, execute, oneValue } from "../Sql.ts"
import { AlertState, nothingSeen } from "./alertState.ts"

const Stored = Schema.parseJson(AlertState)
const decode = Schema.decodeUnknownEither(Stored)
const encode = Schema.encodeSync(Stored)

/** The stored state: nothing where there is none, or where another version has written it. */
export const read = (db: Db) =>
  Effect.map(
    oneValue<string>(db, "SELECT state FROM alerts WHERE id = 1"),
    (state): AlertState => Either.getOrElse(decode(state), () => nothingSeen)
  )

/** What is stored. After a restart, conditions that are not open yet start their patience again: none was observed. */
export const encoded = ({ seen, unsent }: AlertState): string =>
  encode({ seen: seen.filter(({ openedAt }) => openedAt !== undefined), unsent })

export const write = (state: string) => execute("INSERT OR REPLACE INTO alerts (id, state) VALUES (1, ?)", [state])
