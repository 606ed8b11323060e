import { statSync } from "node:fs"
import { dirname } from "node:path"
import { Clock, Effect } from "effect"
import { all as allUsage, shareOf, shares, type Usage } from "../Auth/UsageRepo.ts"
import { backupAge, lastBackupAt } from "../Backup/lastBackup.ts"
import * as Audit from "../Chains/balances/AuditRepo.ts"
import * as LedgerRepo from "../Chains/ledger/LedgerRepo.ts"
import { modes } from "../Domain/Chain.ts"
import { decimalsOn, decimalText } from "../Domain/Currency.ts"
import { ExceptionKind } from "../Domain/Exception.ts"
import { eventLoopTurn } from "../lib/waiting.ts"
import type { UncollectedAmount } from "../Payments/addresses/Uncollected.ts"
import { countLimit, countOpenOfKind } from "../Payments/ExceptionsRepo.ts"
import { countOpen, lastConfirmed } from "../Payments/PaymentsRepo.ts"
import { Settings, type SettingsShape } from "../Settings.ts"
import { freeBytes } from "../Sql/nativeParts.ts"
import { type Db, Reader } from "../Sql.ts"
import { backlog, endpointLanes, waiting, waitingAtUrls } from "../Webhooks/queue/LanesRepo.ts"
import { keptFor } from "./readiness.ts"

export const exceptionFamily = (reader: Db) =>
  Effect.map(
    Effect.forEach(
      modes.flatMap((mode) => ExceptionKind.literals.map((kind) => ({ mode, kind }))),
      ({ kind, mode }) =>
        Effect.zipRight(
          eventLoopTurn,
          Effect.map(countOpenOfKind(reader, mode, kind), (count): Measured => [{ mode, kind }, count])
        ),
      { concurrency: 1 }
    ),
    (counts) => gauge("tilld_open_exceptions", `Open exceptions. At most ${countLimit} of a kind are counted.`, counts)
  )

// Metrics that are read from the store on each scrape. Each statement counts a bounded number of index rows, and requests
// are served between two statements.

/** How long the metrics of many rows are kept: several scrapers cost no more than one. */
const keptTime = "5 seconds"
/** Maximum number of endpoints with their own label. */
const named = 100
/** Open payments are counted up to this number per chain. */
const openLimit = 10_000

/** The longest backlogs by endpoint, and the sum of all others. */
const topOf = (endpoints: ReadonlyArray<readonly [endpoint: string, count: number]>): ReadonlyArray<Measured> => {
  const sorted = [...endpoints].sort(([, one], [, next]) => next - one)
  const rest = sorted.slice(named)
  const shown = sorted.slice(0, named).map(([endpoint, count]): Measured => [{ endpoint }, count])
  const other = rest.reduce((sum, [, count]) => sum + count, 0)
  return rest.length === 0 ? shown : [...shown, [{ endpoint: "other" }, other]]
}

const webhookFamilies = Effect.fnUntraced(function* (reader: Db, now: number) {
  const { due, oldestDueMillis } = yield* backlog(reader, now)
  const endpoints = yield* Effect.forEach(
    yield* endpointLanes(reader),
    (lane) =>
      Effect.zipRight(
        eventLoopTurn,
        Effect.map(waiting(reader, lane), (count) => [lane, count] as const)
      ),
    { concurrency: 1 }
  )
  return [
    gauge(
      "tilld_webhook_oldest_due_age_seconds",
      "Age in seconds of the oldest due webhook delivery; 0 without one.",
      single(oldestDueMillis / 1000)
    ),
    gauge(
      "tilld_webhook_due_deliveries",
      "Due webhook deliveries, including those with an attempt under way. At most 10000 are counted, of 2000 receivers.",
      single(due)
    ),
    gauge(
      "tilld_webhook_backlog_deliveries",
      `Webhook deliveries that wait for an attempt, due now, later or after that of an earlier event, by endpoint: the ${named} longest backlogs, all other endpoints as other, and all payments' own webhookUrls as webhookUrl. At most 10000 are counted of each, and at most 1000 endpoints.`,
      [...topOf(endpoints), [{ endpoint: "webhookUrl" }, yield* waitingAtUrls(reader)]]
    )
  ]
})

/** Of the largest, and of all that are close to their quotas: how many there are must not hide those. */
const accountFamilies = (usages: ReadonlyArray<Usage>): ReadonlyArray<Family> => {
  const shown = usages.filter((usage, place) => place < named || shareOf(usage) >= shares.near)
  const quotas = shown.flatMap(
    ({ account, quota }): ReadonlyArray<Measured> => (quota === undefined ? [] : [[{ account }, quota]])
  )
  return [
    gauge(
      "tilld_account_used_bytes",
      `Bytes stored by an account: of the ${named} largest, and of those close to their quota.`,
      shown.map(({ account, stored }) => [{ account }, stored])
    ),
    gauge("tilld_account_quota_bytes", "Quota of such an account; absent without one.", quotas),
    gauge(
      "tilld_account_quota_used_ratio",
      "Used share of such an account's quota, with what its open payments may still store: from 1 on everything new is refused.",
      shown.flatMap(
        (usage): ReadonlyArray<Measured> =>
          usage.quota === undefined ? [] : [[{ account: usage.account }, shareOf(usage)]]
      )
    )
  ]
}

/** Of existing files. There is no write-ahead log before the first write. `now` in Unix milliseconds. */
const fileFamilies = (path: string, backupAt: number | undefined, now: number): ReadonlyArray<Family> => [
  gauge("tilld_store_file_bytes", "Size of the database and of its write-ahead log.", [
    [{ file: "database" }, statSync(path, { throwIfNoEntry: false })?.size],
    [{ file: "wal" }, statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0]
  ]),
  gauge(
    "tilld_store_free_bytes",
    "Free bytes for tilld on the disk of the database.",
    single(freeBytes(dirname(path)))
  ),
  gauge(
    "tilld_backup_age_seconds",
    "Age in seconds of the last successful backup; absent if none is known, infinite if its time is ahead of the clock.",
    single(backupAt && backupAge(backupAt, now) / 1000)
  )
]

type Amount = Omit<UncollectedAmount, "account">

/** Of all accounts and addresses together, in whole units. */
export const amountFamily = (
  name: string,
  help: string,
  networks: SettingsShape["chains"],
  rows: ReadonlyArray<Amount>
) => {
  const sums = new Map<string, Amount>()
  for (const row of rows) {
    const key = `${row.chain} ${row.mode} ${row.currency}`
    sums.set(key, { ...row, amount: row.amount + (sums.get(key)?.amount ?? 0n) })
  }
  return gauge(
    name,
    help,
    [...sums.values()].map(({ amount, chain, currency, mode }) => {
      const text = decimalText(`${amount}`, decimalsOn(networks, { chain, mode }, currency))
      return [{ chain, mode, currency }, text === undefined ? undefined : Number(text)]
    })
  )
}

/** Metrics of deliveries, payments and chains from the store, and whether the store can be read. */
export const makeStoreFamilies = Effect.gen(function* () {
  const { accounts, chains, database } = yield* Settings
  const reader = yield* Reader
  const exceptions = keptFor(() => keptTime, exceptionFamily(reader))

  const read = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const rows = yield* Effect.forEach(
      chains,
      Effect.fnUntraced(function* ({ chain, mode }) {
        yield* eventLoopTurn
        const scan = yield* LedgerRepo.scan(reader, { chain, mode })
        const open = yield* countOpen(reader, { chain, mode }, openLimit)
        const last = yield* lastConfirmed(reader, { chain, mode })
        const audited = (yield* Audit.progress(reader, { chain, mode }))?.at
        return { labels: { chain, mode }, age: scan && Math.max(0, now / 1000 - scan.head.time), audited, open, last }
      }),
      { concurrency: 1 }
    )
    return [
      ...(yield* webhookFamilies(reader, now)),
      yield* exceptions,
      ...accountFamilies(yield* allUsage(reader, accounts.quotaBytes)),
      gauge(
        "tilld_open_payments",
        `Pending and detecting payments. At most ${openLimit} of a chain are counted.`,
        rows.map(({ labels, open }) => [labels, open])
      ),
      amountFamily(
        "tilld_unaccounted",
        "What came to addresses of tilld and is in no row, in whole units of the currency; audited within a day.",
        chains,
        yield* Audit.told(reader)
      ),
      gauge(
        "tilld_audited_time_seconds",
        "Unix time at which the audit of balances last compared addresses of a chain, a page of them at a time.",
        rows.map(({ audited, labels }) => [labels, audited ? audited / 1000 : undefined])
      ),
      gauge(
        "tilld_last_confirmed_time_seconds",
        "Unix time at which the last payment of a chain was confirmed.",
        rows.map(({ labels, last }) => [labels, last && last / 1000])
      ),
      gauge(
        "tilld_chain_head_age_seconds",
        "Age in seconds of the last scanned block, by its own time.",
        rows.map(({ age, labels }) => [labels, age])
      )
    ]
  })

  return () =>
    Effect.gen(function* () {
      const families = yield* Effect.option(read)
      const backupAt = yield* lastBackupAt(database.path)
      const now = yield* Clock.currentTimeMillis
      return [
        gauge("tilld_store_readable", "Whether the store was readable: otherwise its metrics are absent.", [
          [{}, families._tag === "Some"]
        ]),
        ...fileFamilies(database.path, backupAt, now),
        ...(families._tag === "Some" ? families.value : [])
      ]
    })
})

/** A value with its labels; undefined when it is not known. */
export type Measured = readonly [labels: Readonly<Record<string, string>>, value: number | boolean | undefined]

/** A gauge with the values that a scrape gives it. All samples have the same label names. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly samples: ReadonlyArray<{ readonly labels: Measured[0]; readonly value: number }>
}

/** A gauge of values that were read on demand. A boolean becomes 1 or 0; unknown values are left out. */
export const gauge = (name: string, help: string, measured: ReadonlyArray<Measured>): Family => ({
  name,
  help,
  samples: measured.flatMap(([labels, value]) => (value === undefined ? [] : [{ labels, value: Number(value) }]))
})

/** The only value of a family without labels. */
export const single = (value: Measured[1]): ReadonlyArray<Measured> => [[{}, value]]
