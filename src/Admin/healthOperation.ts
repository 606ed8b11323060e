import { Effect, Schema } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { Chains } from "../Chains.ts"
import { networkKey } from "../Domain/Chain.ts"
import { operation } from "../Operations/operation.ts"
import { Settings } from "../Settings.ts"
import { StoreHealth } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"

const Reason = Schema.Struct({ name: Schema.String, reason: Schema.String })

/** The daemon's own health, which `tilld doctor` cannot see from outside. */
export const readHealth = operation({
  name: "health",
  summary: "How the daemon is: its version, and what is wrong with its chains and workers",
  input: {},
  output: Schema.Struct({
    version: Schema.String,
    pid: Schema.Int,
    /** Of its process, which owns its files. */
    uid: Schema.Int,
    /** Where its index mark is: the default depends on its environment. */
    markFolder: Schema.String,
    /** Chains and workers that are not ready, with the reason. */
    unready: Schema.Array(Reason),
    /** Warnings about chains and workers that are ready: a provider that others contradict, a log without a reader. */
    troubled: Schema.Array(Reason),
    /** Why it writes nothing: the database's path names other files than it has open. Absent where they are its own. */
    lostFiles: Schema.optional(Schema.String)
  }),
  refusals: [],
  run: Effect.fnUntraced(function* () {
    const chains = yield* Effect.flatMap(Chains, ({ health }) => health)
    const workers = yield* Effect.flatMap(Workers, ({ health }) => health)
    const { database } = yield* Settings
    const parts = [...chains.map((chain) => ({ ...chain, name: networkKey(chain) })), ...workers]
    return {
      version: packageJson.version,
      pid: process.pid,
      uid: process.getuid?.() ?? 0,
      markFolder: database.markFolder,
      unready: parts
        .filter(({ ready }) => !ready)
        .map(({ name, reason }) => ({ name, reason: reason ?? "it is not ready yet" })),
      troubled: parts.flatMap(({ name, ready, reason }) => (ready && reason !== undefined ? [{ name, reason }] : [])),
      lostFiles: (yield* StoreHealth).refusal()?.message
    }
  })
})
