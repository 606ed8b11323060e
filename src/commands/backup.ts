import { Args, Command, Options } from "@effect/cli"
import { Effect, Either } from "effect"
import { readStatus } from "../Conditions/operations.ts"
import { Invocation } from "../Control/Invocation.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { common, loadSettings, mustBeFile, UsageError } from "./options.ts"

const options = {
  ...common,
  recipient: Options.text("recipient").pipe(
    Options.withPseudoName("AGE"),
    Options.withDescription("Encrypt it to this age recipient, age1…; may be repeated"),
    Options.repeated
  ),
  force: Options.boolean("force").pipe(Options.withDescription("Replace FILE if it exists"))
}

const file = Args.text({ name: "file" }).pipe(Args.withDescription("A new file, or - for standard output"))

const askDeadline = "5 seconds"

/** Why the daemon takes the database's files for lost. One that cannot be asked keeps nobody from a backup. */
const lostFilesOf = (settings: SettingsShape) =>
  ask(settings, readStatus, {}).pipe(
    Effect.timeout(askDeadline),
    Effect.match({ onSuccess: (health) => health.lostFiles, onFailure: () => undefined })
  )

/** @effect/cli takes `-` for an option, and knows no option after it. */
export const withDashLast = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words[2] !== "backup" || words.includes("--")
    ? words
    : [...words.filter((word) => word !== "-"), ...words.filter((word) => word === "-")]

/** `tilld backup`: beside a running daemon, and without one. */
export const backupCommand = Command.make(
  "backup",
  { ...options, file },
  Effect.fnUntraced(function* ({ file, force, json, recipient, ...rest }) {
    if (file === "-" && (json || process.stdout.isTTY)) {
      return yield* new UsageError({
        message: json
          ? "With - standard output is the backup: leave out --json"
          : "Standard output is a terminal: send the backup to a file or a program"
      })
    }
    const settings = yield* loadSettings(rest)
    yield* mustBeFile(
      settings,
      "it has backups of its own, pg_dump, or base backups with its log (docs/two-machines.md)"
    )
    const { backUp } = yield* Effect.promise(() => import("../Backup.ts"))
    const { note, ...made } = yield* backUp(file, force, {
      database: settings.database.path,
      recipients: recipient,
      daemonRefuses: Effect.provideService(lostFilesOf(settings), Invocation, yield* Invocation)
    })
    if (Either.isLeft(note)) yield* complain(note.left.message)
    const text = `${made.encrypted ? "Encrypted backup" : "Backup"} ${made.file}: ${(made.bytes / 1e6).toFixed(1)} MB, ${made.payments} payments, SHA-256 ${made.sha256}`
    // On standard output is the backup.
    if (file === "-") return yield* complain(text)
    yield* print(json ? JSON.stringify(made) : text)
  })
).pipe(Command.withDescription("Copy the database into a file, checked, also while the daemon runs"))
