import { Effect, Schema } from "effect"
import * as AuditRepo from "../Auth/AuditRepo.ts"
import { isClaimed } from "../Auth/auditLog.ts"
import { iso } from "../Domain/Timestamp.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import { Reader } from "../Sql.ts"
import { reading } from "./controlHandler.ts"
import { Moment, NotFound, PageLimit } from "./controlRequests.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** A row of the audit log as operators see it. */
const AuditView = Schema.Struct({
  id: Schema.Number,
  at: Schema.String,
  via: Schema.Literal("socket", "direct", "api", "portal"),
  who: Schema.String,
  /** The user name was claimed by the command, and not verified. */
  claimed: Schema.Boolean,
  account: optional(Schema.String),
  mode: optional(Schema.String),
  act: Schema.String,
  detail: Schema.Unknown
})
export type AuditView = typeof AuditView.Type

export class ListAudit extends Schema.TaggedRequest<ListAudit>()("ListAudit", {
  payload: { since: Moment, before: optional(Schema.Int), limit: PageLimit },
  success: Schema.Array(AuditView),
  failure: Schema.Union(NotFound, StoreUnavailable)
}) {}

const auditView = ({ account, act, at, detail, mode, sequence, via, who }: AuditRepo.AuditEntry): AuditView => ({
  id: sequence,
  at: iso(at),
  via,
  who,
  claimed: isClaimed(via),
  ...(account === undefined ? {} : { account }),
  ...(mode === undefined ? {} : { mode }),
  act,
  detail: JSON.parse(detail)
})

export const listAudit = reading(
  ListAudit,
  Effect.fnUntraced(function* ({ before, limit, since }) {
    const reader = yield* Reader
    if (before !== undefined && !(yield* AuditRepo.exists(reader, before))) {
      return yield* new NotFound({ message: `There is no act ${before}: tilld audit shows the ids` })
    }
    return (yield* AuditRepo.list(reader, { since, before, limit })).map(auditView)
  })
)
