import { Context, Effect, Layer, type Redacted } from "effect"
import type { SettingsShape } from "./Settings/configSchema.ts"
import type { SettingsSource } from "./Settings/configSource.ts"
import { loadMasterKey } from "./Settings/masterKey.ts"

export type { ChainSettings, SettingsShape } from "./Settings/configSchema.ts"
export type { SettingsSource } from "./Settings/configSource.ts"
export { differing, needsRestart } from "./Settings/configuredValues.ts"
export { load, takenBy } from "./Settings/load.ts"
export { makeMasterKeyFile } from "./Settings/masterKey.ts"
export { SettingsInvalid } from "./Settings/SettingsProblem.ts"

/** The configuration, decoded once at start by `load`. */
export class Settings extends Context.Tag("tilld/Settings")<Settings, SettingsShape>() {}

/** The 32 bytes that seal secrets at rest. */
export class MasterKey extends Context.Tag("tilld/Settings/MasterKey")<MasterKey, Redacted.Redacted<Uint8Array>>() {
  /** Reads it where `env` says, or beside the database. */
  static readonly layer = (env: SettingsSource["env"]) =>
    Layer.effect(
      MasterKey,
      Effect.flatMap(Settings, ({ database }) => loadMasterKey(database.path, env))
    )
}
