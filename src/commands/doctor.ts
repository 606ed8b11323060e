import { Command } from "@effect/cli"
import { Data, Effect } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { type Finding, fail, ok, warn } from "../Doctor/Finding.ts"
import { networkKey } from "../Domain/Chain.ts"
import type { Loaded } from "../Settings.ts"
import { common, configPath, loadSettings } from "./commonOptions.ts"
import { print } from "./Output.ts"

/** Read in only here: no other command asks a chain by itself. */
const looks = Effect.promise(() => Promise.all([import("../Doctor.ts"), import("../Chains/rpc/Rpc.ts")]))

/** Something is wrong that keeps tilld from its work; the findings have been printed. */
export class NotWell extends Data.TaggedError("NotWell")<{ readonly failures: number }> {
  override get message() {
    return this.failures === 1 ? "one look failed" : `${this.failures} looks failed`
  }
}

const configuration = (file: string, { settings, unread }: Loaded): ReadonlyArray<Finding> => [
  ok("configuration", `${file}: chains ${settings.chains.map(networkKey).join(", ")}`),
  ...(unread.length === 0
    ? []
    : [warn("configuration", `nothing in this version reads ${unread.join(", ")}`, "remove them, or update tilld")])
]

const examineAll = Effect.fn("commands.doctor")(function* (options: Parameters<typeof loadSettings>[0]) {
  const { env } = yield* Invocation
  const file = yield* configPath(options)
  return yield* Effect.matchEffect(loadSettings(options), {
    onFailure: ({ problems }) =>
      Effect.succeed(problems.map(({ at, message }) => fail("configuration", `${at}: ${message}`, `correct ${file}`))),
    onSuccess: (loaded) =>
      Effect.gen(function* () {
        const [{ examine }, { Rpc }] = yield* looks
        const found = yield* examine(loaded.settings, env).pipe(Effect.provide(Rpc.layer))
        return [...configuration(file, loaded), ...found]
      })
  })
})

const line = ({ finding, name, remedy, status }: Finding): string =>
  `${status.toUpperCase().padEnd(4)}  ${name}: ${finding}${remedy === undefined ? "" : `. Remedy: ${remedy}`}`

export const doctor = Command.make(
  "doctor",
  common,
  Effect.fnUntraced(function* (options) {
    const findings = yield* examineAll(options)
    const failures = findings.filter(({ status }) => status === "fail").length
    yield* print(options.json ? JSON.stringify({ ok: failures === 0, findings }) : findings.map(line).join("\n"))
    if (failures > 0) return yield* new NotWell({ failures })
  })
).pipe(Command.withDescription("Look at all that tilld stands on, and name a remedy for what is wrong"))
