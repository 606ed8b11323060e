/** Operations on what is wrong: the state of the daemon, and the messages to `alerts.url`. */
import { Clock, Effect, Redacted, Schema } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { lastLook } from "../Chains/balances/AuditRepo.ts"
import { ShownCondition } from "../Domain/Condition.ts"
import { iso } from "../lib/moment.ts"
import { operation } from "../Operations/operation.ts"
import { Settings } from "../Settings.ts"
import { Reader, StoreHealth } from "../Sql.ts"
import { alertSecret, makeSendAlert, messageOf } from "./alerts.ts"
import { confirmReplaced } from "./configuration.ts"
import { type Kind, kinds } from "./kinds.ts"
import { readNodes } from "./nodes.ts"
import { Conditions, keyOf, shownCondition } from "./standing.ts"

export const readStatus = operation({
  name: "status",
  summary: "What is wrong now; exit 1 where customers or money are concerned",
  input: {},
  output: Schema.Struct({
    version: Schema.String,
    pid: Schema.Int,
    /** Of its process, which owns its files. */
    uid: Schema.Int,
    /** ISO 8601. */
    startedAt: Schema.String,
    /** With PostgreSQL: this node, which works, and those that wait. */
    node: Schema.optional(Schema.String),
    standbys: Schema.optional(Schema.Array(Schema.Struct({ node: Schema.String, version: Schema.String }))),
    /** Where its index mark is: the default depends on its environment. */
    markFolder: Schema.String,
    /** Why it writes nothing: the database's path names other files than it has open. Absent where they are its own. */
    lostFiles: Schema.optional(Schema.String),
    /** The keys of conditions for which sales are refused, and for which money may be missed. */
    salesRefused: Schema.Array(Schema.String),
    moneyMissed: Schema.Array(Schema.String),
    /** ISO 8601: up to when the audit of balances has looked at every live chain. Absent: at one it has not yet, or there is none. */
    auditedAt: Schema.optional(Schema.String),
    /** Worst first. */
    conditions: Schema.Array(ShownCondition)
  }),
  refusals: [],
  run: Effect.fnUntraced(function* () {
    const settings = yield* Settings
    const { chains, database, node } = settings
    const live = chains.filter(({ mode }) => mode === "live")
    const reader = yield* Reader
    const audited = yield* Effect.orElseSucceed(lastLook(reader, live), () => undefined)
    const nodes = yield* Effect.orElseSucceed(readNodes(settings, reader), () => undefined)
    const conditions = yield* Effect.flatMap(Conditions, ({ now }) => now)
    const keysThat = (asks: Kind["asks"]) =>
      conditions.filter(({ kind, severity }) => severity !== "note" && kinds[kind].asks === asks).map(keyOf)
    return {
      version: packageJson.version,
      pid: process.pid,
      uid: process.getuid?.() ?? 0,
      startedAt: iso(Math.floor(performance.timeOrigin)),
      node: settings.postgres && node.name,
      standbys: nodes?.standbys,
      markFolder: database.markFolder,
      lostFiles: (yield* StoreHealth).refusal()?.message,
      salesRefused: keysThat("sales"),
      moneyMissed: keysThat("money"),
      auditedAt: audited ? iso(audited) : undefined,
      conditions: conditions.map(shownCondition)
    }
  })
})

/** `alerts.url` is not set. */
export class AlertsOff extends Schema.TaggedError<AlertsOff>()("AlertsOff", { message: Schema.String }) {}

export const showAlertSecret = operation({
  name: "alerts secret",
  summary: "Print the secret that signs messages to alerts.url",
  input: {},
  output: Schema.Struct({ secret: Schema.String }),
  refusals: [],
  audit: () => ({}),
  run: Effect.fnUntraced(function* () {
    return { secret: Redacted.value(yield* alertSecret) }
  })
})

export const confirmWallets = operation({
  name: "config confirm",
  summary: "Confirm that a replaced wallet of the configuration is meant: ends wallet_changed",
  input: {},
  output: Schema.Struct({ confirmed: Schema.Array(Schema.String) }),
  refusals: [],
  audit: () => ({}),
  run: (_input, _caller, note) => confirmReplaced(note)
})

export const testAlert = operation({
  name: "alerts test",
  summary: "Send a test message to alerts.url; exit 1 unless it answers with 2xx",
  input: {},
  output: Schema.Struct({
    id: Schema.String,
    status: Schema.optional(Schema.Number),
    error: Schema.optional(Schema.String)
  }),
  refusals: [AlertsOff],
  audit: () => ({}),
  auditFirst: true,
  run: Effect.fnUntraced(function* () {
    const settings = yield* Settings
    if (settings.alerts.url === "") {
      return yield* new AlertsOff({
        message: "No alerts are sent: set alerts.url in the configuration, and reload tilld"
      })
    }
    const send = yield* makeSendAlert(settings, yield* alertSecret)
    const about = {
      kind: "test",
      subject: "",
      severity: "note",
      summary: "this is a test",
      remedy: "do nothing"
    } as const
    const message = messageOf("alert.test", about, yield* Clock.currentTimeMillis)
    return { id: message.id, ...(yield* send(message)) }
  }, Effect.scoped)
})
