import { Args, Command, Options } from "@effect/cli"
import { Duration, Effect, Either, Option } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { readHealth } from "../Admin/healthOperation.ts"
import type { backUp, backUpInto } from "../Backup.ts"
import { Invocation, untilStopped } from "../Control/Invocation.ts"
import type { SettingsShape } from "../Settings.ts"
import { askRunning } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { common, durationOption, loadSettings, refuse, UsageError } from "./options.ts"

/** Loaded only here. */
const backups = Effect.promise(() => import("../Backup.ts"))

const shortestInterval = "1 minute"

const options = {
  ...common,
  every: durationOption("every").pipe(
    Options.withDescription("Stay, and make one each time this has passed, such as 1h; with --keep"),
    Options.mapEffect((length) =>
      Duration.lessThan(length, shortestInterval)
        ? refuse(`--every must be at least ${shortestInterval}`)
        : Effect.succeed(length)
    ),
    Options.optional
  ),
  keep: Options.integer("keep").pipe(
    Options.withPseudoName("N"),
    Options.withDescription("FILE is a folder: add a backup to it, and remove all but this database's newest N there"),
    Options.mapEffect((count) => (count >= 1 ? Effect.succeed(count) : refuse("--keep must be 1 or more"))),
    Options.optional
  ),
  recipient: Options.text("recipient").pipe(
    Options.withPseudoName("AGE"),
    Options.withDescription("Encrypt it to this age recipient, age1…; may be repeated"),
    Options.repeated
  ),
  force: Options.boolean("force").pipe(Options.withDescription("Replace FILE if it exists"))
}

const file = Args.text({ name: "file" }).pipe(
  Args.withDescription(
    "A new file, or - for standard output; with --keep a folder, otherwise backups beside the database"
  ),
  Args.optional
)

const askDeadline = "5 seconds"

/** Why the daemon takes the database's files for lost. One that cannot be asked keeps nobody from a backup. */
const lostFilesOf = (settings: SettingsShape) =>
  askRunning(settings, readHealth, {}).pipe(
    Effect.timeout(askDeadline),
    Effect.match({ onSuccess: (health) => health?.lostFiles, onFailure: () => undefined })
  )

type Made = Effect.Effect.Success<ReturnType<typeof backUp>> | Effect.Effect.Success<ReturnType<typeof backUpInto>>

const report = (made: Made, json: boolean) =>
  Effect.gen(function* () {
    const { file, isEncrypted, manifest, note } = made
    const { ahead, removed } = "removed" in made ? made : { ahead: [], removed: [] }
    if (ahead.length > 0) {
      yield* Effect.logWarning(`${ahead.join(", ")}: made while the clock was ahead; not counted in --keep`)
    }
    if (Either.isLeft(note)) yield* complain(note.left.message)
    const { bytes, rows } = manifest
    const text = `${isEncrypted ? "Encrypted backup" : "Backup"} ${file}: ${(bytes / 1e6).toFixed(1)} MB, ${rows.payments ?? 0} payments, SHA-256 ${manifest.sha256}`
    // On standard output is the backup.
    if (file === "-") return yield* complain(text)
    yield* print(json ? JSON.stringify({ file, encrypted: isEncrypted, removed, manifest }) : text)
  })

/** @effect/cli takes `-` for an option, and knows no option after it. */
export const withDashLast = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words[2] !== "backup" || words.includes("--")
    ? words
    : [...words.filter((word) => word !== "-"), ...words.filter((word) => word === "-")]

/** `tilld backup`: beside a running daemon, and without one. */
export const backupCommand = Command.make(
  "backup",
  { ...options, file },
  Effect.fnUntraced(function* ({ every, file, force, json, keep, recipient, ...rest }) {
    const settings = yield* loadSettings(rest)
    const { backUp, backUpEvery, backUpInto, usualFolder } = yield* backups
    const database = settings.database.path
    const daemonRefuses = Effect.provideService(lostFilesOf(settings), Invocation, yield* Invocation)
    const asked = { database, version: packageJson.version, recipients: recipient, daemonRefuses, onProgress: complain }
    if (Option.isNone(keep)) {
      if (Option.isSome(every)) return yield* new UsageError({ message: "--every needs --keep N: how many to keep" })
      if (Option.isNone(file)) return yield* new UsageError({ message: "Name a new file, or - for standard output" })
      if (file.value === "-" && (json || process.stdout.isTTY)) {
        return yield* new UsageError({
          message: json
            ? "With - standard output is the backup: leave out --json"
            : "Standard output is a terminal: send the backup to a file or a program"
        })
      }
      return yield* report(yield* backUp(file.value, force, asked), json)
    }
    if (Option.contains(file, "-")) return yield* new UsageError({ message: "--keep needs a folder" })
    const folder = Option.isSome(file) ? file.value : yield* usualFolder(database)
    const once = Effect.flatMap(backUpInto(folder, keep.value, asked), (made) => report(made, json))
    if (Option.isNone(every)) return yield* once
    const each = Duration.toMillis(every.value)
    return yield* untilStopped(
      backUpEvery(each, folder, keep.value, asked, (made) => report(made, json), Effect.logError)
    )
  })
).pipe(Command.withDescription("Copy the database into a file, checked, also while the daemon runs"))
