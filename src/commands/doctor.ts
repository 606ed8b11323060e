import { Command } from "@effect/cli"
import { Data, Effect } from "effect"
import { readStatus } from "../Conditions/operations.ts"
import { Invocation } from "../Control/Invocation.ts"
import { type AskedDaemon, isHealth, type Silent } from "../Doctor/daemon.ts"
import { type Finding, fail, ok } from "../Doctor/Finding.ts"
import { networkKey } from "../Domain/Chain.ts"
import { quantityText } from "../lib/quantities.ts"
import type { SettingsShape } from "../Settings.ts"
import { isJournal } from "../Telemetry/logging.ts"
import { ask } from "./askDaemon.ts"
import { print } from "./Output.ts"
import { common, configPath, loadSettings } from "./options.ts"

/** Loaded only here: no other command asks a chain by itself. */
const checks = Effect.promise(() => Promise.all([import("../Doctor.ts"), import("../Chains/rpc/Rpc.ts")]))

/** A check found something that keeps tilld from its work. The findings have been printed. */
export class NotWell extends Data.TaggedError("NotWell")<{ readonly failures: number }> {
  override get message() {
    return this.failures === 1 ? "one check failed" : `${this.failures} checks failed`
  }
}

/** What is examined is the file. A daemon may run with another configuration: which keys differ is a condition of its own. */
export const configuration = (file: string, { chains }: SettingsShape, daemon: AskedDaemon): Finding => {
  const differs = isHealth(daemon) && daemon.conditions.some(({ key }) => key === "configuration_differs")
  const which = differs ? `${file} as it is now, with which the daemon does not run yet` : file
  return ok("configuration", `${which}: chains ${chains.map(networkKey).join(", ")}`)
}

/** Asks the daemon how it is; undefined where none runs. That it does not say is a finding. */
const askStatus = (settings: SettingsShape): Effect.Effect<AskedDaemon, never, Invocation> =>
  ask(settings, readStatus, {}).pipe(
    Effect.catchTag("DaemonAbsent", "InstanceLocked", () => Effect.succeed(undefined)),
    Effect.catchAll((error) =>
      Effect.succeed<Silent>(
        error._tag === "DaemonSilent"
          ? { silent: `it ${error.what}`, remedy: "journalctl -u tilld says why; restart it if it goes on" }
          : { silent: error.message }
      )
    )
  )

const examineAll = Effect.fn("commands.doctor")(function* (options: Parameters<typeof loadSettings>[0]) {
  const { env } = yield* Invocation
  const file = yield* configPath(options)
  return yield* Effect.matchEffect(loadSettings(options), {
    onFailure: ({ problems }) =>
      Effect.succeed(problems.map(({ at, message }) => fail("configuration", `${at}: ${message}`, `correct ${file}`))),
    onSuccess: (settings) =>
      Effect.gen(function* () {
        const [{ examine }, { Rpc }] = yield* checks
        const daemon = yield* askStatus(settings)
        const found = yield* examine(settings, { path: file, env }, daemon).pipe(Effect.provide(Rpc.layer))
        return [configuration(file, settings, daemon), ...found]
      })
  })
})

/** What there is to do comes first. */
const order = ["fail", "warn", "ok"] as const

/** How many of the checks failed, and how many warn. */
const summaryOf = (findings: ReadonlyArray<Finding>) => ({
  problems: findings.filter(({ status }) => status === "fail").length,
  warnings: findings.filter(({ status }) => status === "warn").length,
  checks: findings.length
})

const renderSummary = ({ checks, problems, warnings }: ReturnType<typeof summaryOf>): string =>
  problems + warnings === 0
    ? `all ${quantityText(checks, "check")} are fine`
    : [quantityText(problems, "problem"), quantityText(warnings, "warning"), quantityText(checks, "check")].join(", ")

/** The summary, then what is not fine, worst first, each finding in a line with its remedy. */
export const renderFindings = (findings: ReadonlyArray<Finding>): string =>
  [
    renderSummary(summaryOf(findings)),
    ...order.flatMap((status) => findings.filter((finding) => finding.status === status).map(line))
  ].join("\n")

const line = ({ finding, name, remedy, status }: Finding): string =>
  `${status.toUpperCase().padEnd(4)}  ${name}: ${remedy === undefined ? finding : `${finding.replace(/(?<!\.)\.+$/, "")}. Remedy: ${remedy}`}`

/** In the journal a line has its priority: err for what fails, warning for what warns. */
const forJournal = (text: string): string => text.replace(/^FAIL/gm, "<3>FAIL").replace(/^WARN/gm, "<4>WARN")

/** `tilld doctor`: exit 1 where a check fails, also for a configuration that cannot be used. */
export const doctor = Command.make(
  "doctor",
  common,
  Effect.fnUntraced(function* (options) {
    const findings = yield* examineAll(options)
    const summary = summaryOf(findings)
    const { problems } = summary
    const { env } = yield* Invocation
    const text = renderFindings(findings)
    const shown = isJournal(env, 1) ? forJournal(text) : text
    yield* print(options.json ? JSON.stringify({ ok: problems === 0, summary, findings }) : shown)
    if (problems > 0) return yield* new NotWell({ failures: problems })
  })
).pipe(Command.withDescription("Check everything that tilld depends on, and name a remedy for what is wrong"))
