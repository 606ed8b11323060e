import { Args, Command, Options } from "@effect/cli"
import { Effect, Either } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { readHealth } from "../Admin/healthOperation.ts"
import { Invocation } from "../Control/Invocation.ts"
import type { SettingsShape } from "../Settings.ts"
import { askRunning } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { common, loadSettings, UsageError } from "./options.ts"

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
  askRunning(settings, readHealth, {}).pipe(
    Effect.timeout(askDeadline),
    Effect.match({ onSuccess: (health) => health?.lostFiles, onFailure: () => undefined })
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
    const { backUp } = yield* Effect.promise(() => import("../Backup.ts"))
    const made = yield* backUp(file, force, {
      database: settings.database.path,
      version: packageJson.version,
      recipients: recipient,
      daemonRefuses: Effect.provideService(lostFilesOf(settings), Invocation, yield* Invocation),
      onProgress: complain
    })
    const { isEncrypted, manifest, note } = made
    if (Either.isLeft(note)) yield* complain(note.left.message)
    const { bytes, rows } = manifest
    const text = `${isEncrypted ? "Encrypted backup" : "Backup"} ${made.file}: ${(bytes / 1e6).toFixed(1)} MB, ${rows.payments ?? 0} payments, SHA-256 ${manifest.sha256}`
    // On standard output is the backup.
    if (file === "-") return yield* complain(text)
    yield* print(json ? JSON.stringify({ file: made.file, encrypted: isEncrypted, manifest }) : text)
  })
).pipe(Command.withDescription("Copy the database into a file, checked, also while the daemon runs"))
