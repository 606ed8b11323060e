import { Effect } from "effect"
import * as UsageRepo from "../Auth/UsageRepo.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader } from "../Sql.ts"
import type { OperatorHealthApi } from "./Api.ts"
import { alive, makeReport, readinessStatusOf } from "./readiness.ts"

/** Accounts that will soon reach their quota. */
const nearlyFull = Effect.fn("Admin.nearlyFull")(function* (reader: Db, quotaBytes: number) {
  const usages = yield* UsageRepo.all(reader)
  return usages
    .filter((usage) => UsageRepo.isNearlyFull(usage, quotaBytes))
    .map(({ account, reserved, stored }) => ({
      account,
      usedBytes: stored + reserved,
      quotaBytes,
      reason:
        `${Math.floor((100 * (stored + reserved)) / quotaBytes)} % of its quota is used: at 100 % new payments, quotes and ` +
        "endpoints are refused with 507. Remedy: raise accounts.quota_bytes"
    }))
})

/** Health with reasons, providers, the delivery backlog, and accounts near their quota. */
export const operatorHealthHandlers = Effect.gen(function* () {
  const report = yield* makeReport
  const reader = yield* Reader
  const { accounts } = yield* Settings
  const handlers: Handlers<typeof OperatorHealthApi> = {
    alive: () => Effect.succeed(alive),
    ready: () =>
      Effect.zipWith(report, nearlyFull(reader, accounts.quotaBytes), (readiness, accounts) =>
        answer({ ...readiness, accounts }, readinessStatusOf(readiness))
      )
  }
  return handlers
})
