/** Something that is wrong now, as the daemon tells of it. */
import { Schema } from "effect"

/** `page`: customers or money are concerned now. `ticket`: there is time until the morning. `note`: worth knowing. */
export const Severity = Schema.Literal("page", "ticket", "note")
export type Severity = typeof Severity.Type

export const ShownCondition = Schema.Struct({
  /** What is wrong: a heading of docs/runbook.md. */
  key: Schema.String,
  /** Which one of its kind: an endpoint, an account, a chain; empty where there is one only. */
  subject: Schema.String,
  severity: Severity,
  summary: Schema.String,
  remedy: Schema.String,
  /** Since when it holds, as the daemon saw it. ISO 8601. */
  since: Schema.String
})
