/**
 * The configuration as a fact: what changed between two starts or at a reload is in the audit log, and a condition says where
 * the file differs from what the daemon runs with, and that a wallet was replaced.
 */
import { Array as Arr, Clock, Effect, Option, Schema } from "effect"
import { type Mode, modes } from "../Domain/Chain.ts"
import { iso } from "../lib/moment.ts"
import { cut } from "../lib/text.ts"
import { type Note, noteOfDaemon } from "../Operations/auditLog.ts"
import { differing, needsRestart, Settings } from "../Settings.ts"
import { type Db, oneValue, Reader, replaceRow, Writer } from "../Sql.ts"
import { type Condition, conditionOf } from "./standing.ts"

/** How long a replaced wallet is told of, unless an operator confirms it. Milliseconds. */
const tellReplaced = 7 * 86_400_000
/** How old what was read of the file may be: reading it takes some 20 ms of the event loop. Milliseconds. */
const keptFile = 60_000
/** Changed keys in one row of the audit log, whose size is bounded. */
const keysPerRow = 5

/** What the daemon last ran with, and when each wallet took the place of another one: Unix milliseconds. */
const Known = Schema.Struct({
  values: Schema.Record({ key: Schema.String, value: Schema.String }),
  replaced: Schema.Struct({ live: Schema.optional(Schema.Number), test: Schema.optional(Schema.Number) })
})
type Known = typeof Known.Type

const Stored = Schema.parseJson(Known)
const decode = Schema.decodeOption(Stored)
const encode = Schema.encodeSync(Stored)

const readKnown = (db: Db) =>
  Effect.map(oneValue<string>(db, "SELECT known FROM configuration"), (text) =>
    Option.getOrUndefined(Option.flatMap(Option.fromNullable(text), decode))
  )

const store = (known: Known) => replaceRow("configuration", ["id"], { id: 1, known: encode(known) })

/** Notes what is configured otherwise than at the last start. Nothing at the first: there is nothing to compare it with. */
export const noteConfiguration = Effect.gen(function* () {
  const { values } = yield* Settings
  const writer = yield* Writer
  const known = yield* readKnown(yield* Reader)
  const changed = known === undefined ? [] : differing(known.values, values)
  if (known !== undefined && changed.length === 0) return
  const now = yield* Clock.currentTimeMillis
  const told = changed.map((key) => [key, `${known?.values[key] ?? "not set"} → ${values[key] ?? "not set"}`] as const)
  const replaced = modes.filter((mode) => {
    const key = `wallets.${mode}`
    return changed.includes(key) && known?.values[key] !== undefined && values[key] !== undefined
  })
  yield* writer.write(
    Effect.gen(function* () {
      const times = Object.fromEntries(replaced.map((mode) => [mode, now]))
      yield* store({ values, replaced: { ...known?.replaced, ...times } })
      for (const some of Arr.chunksOf(told, keysPerRow)) {
        yield* noteOfDaemon({ act: "configuration", detail: Object.fromEntries(some) })
      }
    })
  )
  if (told.length === 0) return
  yield* Effect.logInfo("the configuration has changed").pipe(
    Effect.annotateLogs({ keys: told.map((each) => each.join(": ")).join("; ") })
  )
  // Without its row the change is found again at the next start.
}).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logError(message)))

/** An operator has looked at the wallets that took the place of others. */
export const confirmReplaced = Effect.fnUntraced(function* (note: Note) {
  const known = yield* readKnown(yield* Reader)
  const confirmed = modes.filter((mode) => known?.replaced[mode] !== undefined)
  note({ confirmed })
  if (known !== undefined) yield* Effect.flatMap(Writer, ({ write }) => write(store({ ...known, replaced: {} })))
  return { confirmed }
})

const ofReplaced = (mode: Mode, at: number, now: number): ReadonlyArray<Condition> =>
  now - at > tellReplaced
    ? []
    : [
        conditionOf(
          "wallet_changed",
          mode,
          `wallets.${mode} was replaced: since ${iso(at)} new payments are paid to another wallet`,
          "once the file has the key that is meant: tilld config confirm. If it has not: put the former one back and reload first; who changed it?",
          mode === "live" ? "page" : "ticket"
        )
      ]

const differs = (summary: string, remedy: string): ReadonlyArray<Condition> => [
  conditionOf("configuration_differs", "", summary, remedy)
]

/** Makes the judgement of the file and of the wallets. */
export const makeConfiguration = Effect.gen(function* () {
  const { again, values } = yield* Settings
  const reader = yield* Reader
  let readAt = Number.NEGATIVE_INFINITY
  let ofFile: ReadonlyArray<Condition> = []
  const look = Effect.match(again, {
    onFailure: ({ problems }) => {
      const all = problems.map(({ at, message }) => `${at}: ${message}`).join("; ")
      return differs(`the file cannot be used: ${cut(all, 500, "…")}`, "correct it: the next start is refused with it")
    },
    onSuccess: (onDisk) => {
      const keys = differing(values, onDisk.values)
      const restart = keys.filter(needsRestart)
      const how =
        restart.length === 0
          ? "systemctl reload tilld takes it"
          : `systemctl restart tilld takes it: ${restart.join(", ")} cannot be taken by a reload`
      return keys.length === 0 ? [] : differs(`the file differs from what tilld runs with: ${keys.join(", ")}`, how)
    }
  })
  const conditions = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (Math.abs(now - readAt) >= keptFile) {
      ofFile = yield* look
      readAt = now
    }
    const replaced = (yield* readKnown(reader))?.replaced ?? {}
    return [...ofFile, ...modes.flatMap((mode) => ofReplaced(mode, replaced[mode] ?? Number.NEGATIVE_INFINITY, now))]
  })
  return { conditions }
})
