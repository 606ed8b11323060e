import { Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { untilStopped } from "./invoked.ts"
import { sandboxConfig, sandboxConfigPath } from "./localChain.ts"
import { sandboxPay } from "./sandboxPay.ts"

/** Local chains, their contracts and the daemon are loaded only here. */
const sandboxed = Effect.promise(() => import("./runSandbox.ts"))

const alone = Command.make(
  "sandbox",
  {
    config: sandboxConfig,
    demo: Options.boolean("demo").pipe(
      Options.withDescription("Make two payments, pay them, print each signed webhook, and end")
    )
  },
  Effect.fnUntraced(function* ({ config, demo }) {
    const { env } = yield* Invocation
    const { runSandbox } = yield* sandboxed
    const run = runSandbox({ source: { path: yield* sandboxConfigPath(config), env }, demo })
    yield* demo ? run : untilStopped(run)
  })
).pipe(Command.withDescription("Run five local chains and a daemon that watches them, to try things out"))

/** `tilld sandbox`: runs local chains and a daemon until it is stopped; `tilld sandbox pay` pays beside it. */
export const sandbox = alone.pipe(Command.withSubcommands([sandboxPay(Effect.map(alone, ({ config }) => config))]))
