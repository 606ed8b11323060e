import { Effect } from "effect"
import * as UsageRepo from "../Auth/UsageRepo.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { alive, makeReport, statusOf } from "../Http/health.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import type { OperatorHealthApi } from "./Api.ts"

/** Accounts that will soon be refused. */
const makeAccounts = Effect.gen(function* () {
  const { quotaBytes } = (yield* Settings).accounts
  const reader = yield* Reader
  return Effect.map(UsageRepo.all(reader), (usages) =>
    usages
      .filter((usage) => UsageRepo.isNearlyFull(usage, quotaBytes))
      .map(({ account, reserved, stored }) => ({
        account,
        usedBytes: stored + reserved,
        quotaBytes,
        reason: "it has almost stored what it may, and is refused then. Remedy: raise accounts.quota_bytes"
      }))
  )
})

/** Health with reasons, providers, what waits, and accounts that are almost full. */
export const operatorHealthHandlers = Effect.gen(function* () {
  const report = yield* makeReport
  const accounts = yield* makeAccounts
  const ready = Effect.zipWith(report, accounts, (told, accounts) => answer({ ...told, accounts }, statusOf(told)))
  const handlers: Handlers<typeof OperatorHealthApi> = { alive: () => Effect.succeed(alive), ready: () => ready }
  return handlers
})
