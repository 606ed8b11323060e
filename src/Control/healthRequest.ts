import { Effect, Schema } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { Chains } from "../Chains.ts"
import { networkKey } from "../Domain/Chain.ts"
import { Settings } from "../Settings.ts"
import { StoreHealth } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { reading } from "./controlHandler.ts"

/** What the daemon knows of itself and `tilld doctor` cannot see from outside. */
const DaemonHealth = Schema.Struct({
  version: Schema.String,
  pid: Schema.Int,
  /** Of its process, which owns its files. */
  uid: Schema.Int,
  /** Where its index mark is: the default depends on its environment. */
  markFolder: Schema.String,
  /** Chains and workers that are not ready, with the reason. */
  unready: Schema.Array(Schema.Struct({ name: Schema.String, reason: Schema.String })),
  /** Why its log cannot be written; absent where it can. */
  lostLines: Schema.optional(Schema.String),
  /** Why it writes nothing: the database's path names other files than it has open. Absent where they are its own. */
  lostFiles: Schema.optional(Schema.String)
})

/** Asks the daemon how it is. Commands without a daemon do not carry it out. */
export class ReadHealth extends Schema.TaggedRequest<ReadHealth>()("ReadHealth", {
  payload: {},
  success: DaemonHealth,
  failure: Schema.Never
}) {}

export const readHealth = reading(
  ReadHealth,
  Effect.fnUntraced(function* () {
    const chains = yield* Effect.flatMap(Chains, ({ health }) => health)
    const workers = yield* Effect.flatMap(Workers, ({ health }) => health)
    const { database } = yield* Settings
    const lostFiles = (yield* StoreHealth).refusal()?.message
    const lostLines = workers.find(({ name, ready }) => name === "log" && ready)?.reason
    const parts = [...chains.map((chain) => ({ ...chain, name: networkKey(chain) })), ...workers]
    return {
      version: packageJson.version,
      pid: process.pid,
      uid: process.getuid?.() ?? 0,
      markFolder: database.markFolder,
      unready: parts
        .filter(({ ready }) => !ready)
        .map(({ name, reason }) => ({ name, reason: reason ?? "it is not ready yet" })),
      ...(lostLines === undefined ? {} : { lostLines }),
      ...(lostFiles === undefined ? {} : { lostFiles })
    }
  })
)
