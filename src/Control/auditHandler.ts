import { Effect } from "effect"
import * as AuditRepo from "../Auth/AuditRepo.ts"
import { isClaimed } from "../Auth/auditLog.ts"
import { NotFound } from "../Auth/inputFields.ts"
import { iso } from "../Domain/Timestamp.ts"
import { Reader } from "../Sql.ts"
import { type AuditView, ListAudit } from "./auditRequest.ts"
import { reading } from "./controlHandler.ts"

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
