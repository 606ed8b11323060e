import { Effect, Option } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { type LocalNetwork, localChainIn } from "../Sandbox/local.ts"
import { load, type SettingsShape } from "../Settings.ts"
import { fileOption, UsageError } from "./options.ts"

export const defaultSandboxConfig = "config/sandbox.toml"

/** The configuration of a sandbox. */
export const sandboxConfig = fileOption(
  "config",
  `The sandbox's configuration; otherwise $TILLD_CONFIG, then ./${defaultSandboxConfig}`
)

export const sandboxConfigPath = (config: Option.Option<string>): Effect.Effect<string, never, Invocation> =>
  Effect.map(Invocation, ({ env }) => Option.getOrElse(config, () => env.TILLD_CONFIG || defaultSandboxConfig))

/** The settings of a sandbox, and where they are. */
export const loadSandbox = Effect.fnUntraced(function* (config: Option.Option<string>) {
  const { env } = yield* Invocation
  const path = yield* sandboxConfigPath(config)
  return { path, settings: yield* load({ path, env }) }
})

/** A local chain of the sandbox: the only kind whose coins may be spent. */
export const localChain = (
  { path, settings }: { readonly path: string; readonly settings: SettingsShape },
  name: string
): Effect.Effect<LocalNetwork, UsageError> =>
  Effect.suspend(() => {
    const chain = localChainIn(settings.chains, name)
    if (chain !== undefined) return Effect.succeed(chain)
    return new UsageError({
      message: `${path} has no local chain ${name} in test mode: --config must be a sandbox's configuration`
    })
  })
