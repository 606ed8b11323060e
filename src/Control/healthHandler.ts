import { Effect } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { Chains } from "../Chains.ts"
import { networkKey } from "../Domain/Chain.ts"
import { Settings } from "../Settings.ts"
import { StoreHealth } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { reading } from "./controlHandler.ts"
import { ReadHealth } from "./healthRequest.ts"

export const readHealth = reading(
  ReadHealth,
  Effect.fnUntraced(function* () {
    const chains = yield* Effect.flatMap(Chains, ({ health }) => health)
    const workers = yield* Effect.flatMap(Workers, ({ health }) => health)
    const { database } = yield* Settings
    const lostFiles = (yield* StoreHealth).refusal()?.message
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
      ...(lostFiles === undefined ? {} : { lostFiles })
    }
  })
)
