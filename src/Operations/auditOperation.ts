import { Clock, Effect, Schema } from "effect"
import { must } from "../lib/annotations.ts"
import { Moment } from "../lib/moment.ts"
import { Reader } from "../Sql/Db.ts"
import * as AuditRepo from "./AuditRepo.ts"
import { isClaimed } from "./auditLog.ts"
import { limitField, MomentField, maybe, momentAt, NotFound } from "./inputFields.ts"
import { operation, withFlag } from "./operation.ts"

/** A row of the audit log as operators see it. */
const AuditedAct = Schema.Struct({
  id: Schema.Number,
  at: Moment,
  via: Schema.Literal(...AuditRepo.vias),
  who: Schema.String,
  /** The user name was claimed by the command, and not verified. */
  claimed: Schema.Boolean,
  account: Schema.optional(Schema.String),
  mode: Schema.optional(Schema.String),
  act: Schema.String,
  detail: Schema.Unknown
})
export type AuditedActJson = typeof AuditedAct.Encoded

export const listAudit = operation({
  name: "audit",
  summary: "Show who administered what, newest first. A claimed name is the user's own word",
  input: {
    since: withFlag(maybe(MomentField), {
      about: "Of this time or later: 2026-01-31T12:00:00Z, 2026-01-31, or 24h for so long ago",
      value: "TIME"
    }),
    before: withFlag(maybe(must("be the ID of an act", Schema.Int)), {
      about: "The page of acts before the one with this ID",
      value: "ID"
    }),
    limit: limitField(100)
  },
  output: Schema.Array(AuditedAct),
  refusals: [NotFound],
  run: Effect.fnUntraced(function* ({ before, limit, since }) {
    const reader = yield* Reader
    if (before !== undefined && !(yield* AuditRepo.exists(reader, before))) {
      return yield* new NotFound({ message: `There is no act ${before}: tilld audit shows the ids` })
    }
    const from = since === undefined ? 0 : momentAt(since, yield* Clock.currentTimeMillis)
    return (yield* AuditRepo.list(reader, { since: from, before, limit })).map(
      ({ detail, sequence: id, ...entry }) => ({
        ...{ ...entry, id, claimed: isClaimed(entry.via) },
        detail: JSON.parse(detail)
      })
    )
  })
})
