import { Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { untilStopped } from "./commonOptions.ts"

/** Local chains, their contracts and the daemon are loaded only here. */
const sandboxed = Effect.promise(() => import("./runSandbox.ts"))

/** `tilld sandbox`: runs local chains and a daemon until it is stopped. */
export const sandbox = Command.make(
  "sandbox",
  {
    config: Options.text("config").pipe(
      Options.withPseudoName("FILE"),
      Options.withDescription("The configuration; otherwise $TILLD_CONFIG, then ./config/sandbox.toml"),
      Options.optional
    ),
    demo: Options.boolean("demo").pipe(
      Options.withDescription("Make two payments, pay them, print each signed webhook, and end")
    )
  },
  Effect.fnUntraced(function* ({ config, demo }) {
    const { env } = yield* Invocation
    const { runSandbox } = yield* sandboxed
    const path = Option.getOrElse(config, () => env.TILLD_CONFIG || "config/sandbox.toml")
    const run = runSandbox({ source: { path, env }, demo })
    yield* demo ? run : untilStopped(run)
  })
).pipe(Command.withDescription("Run five local chains and a daemon that watches them, to try things out"))
