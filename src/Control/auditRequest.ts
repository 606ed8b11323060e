import { Schema } from "effect"
import { NotFound } from "../Auth/inputFields.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import { Moment, PageLimit } from "./controlRequests.ts"

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
