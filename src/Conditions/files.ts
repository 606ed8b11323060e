/** What is wrong with the files around the database: its write-ahead log, and the newest backup. */
import { accessSync, constants, statSync } from "node:fs"
import { Clock, Duration, Effect, Either } from "effect"
import { inChildProcess } from "../Backup/childProcess.ts"
import { isEncrypted } from "../Backup/encryption.ts"
import { lastBackup } from "../Backup/lastBackup.ts"
import { bytesText } from "../lib/quantities.ts"
import { type Condition, conditionIf, conditionOf } from "./standing.ts"

/** Bytes of a log that has not been checkpointed for long: usual ones have a tenth of that. */
const longLog = 64e6
const interval = "10 minutes"
const day = Duration.toMillis("1 day")

/** The judgement of the files, and the worker that reads each new backup back, and the newest one once a day. */
export const makeFiles = (path: string) => {
  let broken: ReadonlyArray<Condition> = []
  let checked = ""

  const ofLog = (): ReadonlyArray<Condition> => {
    const log = `${path}-wal`
    const bytes = statSync(log, { throwIfNoEntry: false })?.size ?? 0
    const summary = `${log} has ${bytesText(bytes)}: something keeps them from being moved into the database`
    const remedy = `end what reads the database for so long, such as sqlite3 or a backup that hangs: fuser -v ${path} shows it`
    return conditionIf(bytes > longLog, "wal_long", "", summary, remedy)
  }

  /** An encrypted one cannot be checked here, nor one that was sent elsewhere or belongs to another user. */
  const readBack = Effect.fn("Conditions.readBack")(function* () {
    const last = yield* lastBackup(path)
    const file = last?.file ?? "-"
    const look = `${file} ${last?.madeAt} ${Math.floor((yield* Clock.currentTimeMillis) / day)}`
    if (look === checked) return
    checked = look
    const isPlain = yield* Effect.try(() => {
      accessSync(file, constants.R_OK)
      return !isEncrypted(file)
    }).pipe(Effect.orElseSucceed(() => false))
    const found = isPlain
      ? yield* Effect.either(inChildProcess({ does: "verify", file }, `${file} cannot be read back`))
      : Either.right({ damage: [] })
    const damage = Either.isLeft(found) ? [found.left.message] : "damage" in found.right ? found.right.damage : []
    const remedy = "make another one now, tilld backup FILE, and look at the disk that it is on"
    broken = damage.map((one) =>
      conditionOf("backup_broken", "", `the newest backup, ${file}, is not usable: ${one}`, remedy)
    )
  })

  // Soon after a start too, so that what was broken before it is not taken for mended.
  const pause = () => Effect.sleep(checked === "" || broken.length > 0 ? "1 minute" : interval)

  return {
    conditions: () => [...ofLog(), ...broken],
    readBack: readBack(),
    run: Effect.forever(Effect.zipRight(Effect.suspend(pause), readBack()))
  }
}
