import { Effect } from "effect"
import { closeAccounts } from "../Auth/quotaLevel.ts"
import * as UsageRepo from "../Auth/UsageRepo.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader } from "../Sql.ts"
import type { OperatorHealthApi } from "./Api.ts"
import { alive, makeReport, readinessStatusOf } from "./readiness.ts"

/** Accounts that are close to their quota. */
const closeToQuota = (reader: Db, quotaBytes: number) =>
  Effect.map(UsageRepo.all(reader, quotaBytes), (usages) =>
    closeAccounts(usages).map(({ account, quota, remedy, stored, summary }) => ({
      account,
      usedBytes: stored,
      quotaBytes: quota,
      reason: `${summary}. Remedy: ${remedy}`
    }))
  )

/** Health with reasons, providers, the delivery backlog, and accounts near their quota. */
export const operatorHealthHandlers = Effect.gen(function* () {
  const report = yield* makeReport
  const reader = yield* Reader
  const { accounts } = yield* Settings
  const handlers: Handlers<typeof OperatorHealthApi> = {
    alive: () => Effect.succeed(alive),
    ready: () =>
      Effect.zipWith(report, closeToQuota(reader, accounts.quotaBytes), (readiness, accounts) =>
        answer({ ...readiness, accounts }, readinessStatusOf(readiness))
      )
  }
  return handlers
})
