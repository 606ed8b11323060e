import { dirname } from "node:path"
import { BigDecimal, Clock, Duration, Effect } from "effect"
import * as UsageRepo from "../Auth/UsageRepo.ts"
import { type CloseAccount, closeAccounts, levelsOf, type QuotaLevel } from "../Auth/UsageRepo.ts"
import { backupAge, lastBackupAt } from "../Backup/lastBackup.ts"
import { type ChainHealth, Chains } from "../Chains.ts"
import { splitRemedy } from "../Domain/ApiError.ts"
import { networkKey } from "../Domain/Chain.ts"
import { ExceptionKind } from "../Domain/Exception.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { iso } from "../lib/moment.ts"
import { Uncollected, worthOfWaiting } from "../Payments/addresses/Uncollected.ts"
import { countOpenOfKind } from "../Payments/ExceptionsRepo.ts"
import { Prices } from "../Quotes/Prices.ts"
import { Settings } from "../Settings.ts"
import { freeBytes } from "../Sql/nativeParts.ts"
import { Reader } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { type EndpointOutcome, outcomesOf } from "../Webhooks/queue/EndpointsRepo.ts"
import type { Condition } from "./alertState.ts"

const minutes = (count: number): number => Duration.toMillis(Duration.minutes(count))

/** Minimum free bytes on the disk of the database. */
const leastFree = 1e9
/** An hour more than a day, in which a daily backup may be late. */
const oldestBackup = 25 * 60
/** How far the clock may be behind a chain's, and how old every chain's head may seem, in seconds. */
const behind = 30
const ahead = 300
/** Maximum number of failing endpoints that are reported one by one, longest failing first. */
const mostEndpoints = 20

/** Of live chains only: no one is woken for a test chain. */
const ofChain = (chain: ChainHealth): ReadonlyArray<Condition> => {
  const name = networkKey(chain)
  const { remedy = "tilld doctor says what is wrong with its providers", wrong } = splitRemedy(
    chain.reason ?? "it is behind"
  )
  const unread: Condition = {
    key: `chain ${name}`,
    summary: `${name} is not read, and payments on it wait: ${wrong}`,
    remedy,
    patience: minutes(5)
  }
  const troubled: Condition = { key: `trouble ${name}`, summary: `${name}: ${wrong}`, remedy, patience: minutes(10) }
  const providers = chain.providers.flatMap(
    ({ healthy, host, reason = "it is unhealthy" }, i): ReadonlyArray<Condition> =>
      healthy
        ? []
        : [
            {
              key: `provider ${name} ${i}`,
              summary: `${host} is not used for ${name}: ${splitRemedy(reason).wrong}`,
              remedy: "tilld doctor; if it lasts, put another provider in its place in rpc_urls",
              patience: minutes(15)
            }
          ]
  )
  const late = chain.headAheadSeconds ?? 0
  const clock: Condition = {
    key: `clock ${name}`,
    summary: `this machine's clock is ${Math.round(late)} seconds behind ${name}: payments end late`,
    remedy: "let chrony or systemd-timesyncd set it",
    patience: minutes(1)
  }
  const alone: Condition = {
    key: `alone ${name}`,
    summary: `one provider decides alone on ${name}: no other has responded for ${Math.round((chain.decidesAloneSeconds ?? 0) / 60)} minutes`,
    remedy: "tilld doctor says what is wrong with the others; add another provider to rpc_urls",
    patience: 0
  }
  return [
    ...(chain.ready ? [] : [unread]),
    ...(chain.decidesAloneSeconds === undefined ? [] : [alone]),
    ...(chain.ready && chain.reason !== undefined && chain.decidesAloneSeconds === undefined ? [troubled] : []),
    ...providers,
    ...(late > behind ? [clock] : [])
  ]
}

const ofClock = (chains: ReadonlyArray<ChainHealth>): ReadonlyArray<Condition> => {
  const ages = chains.flatMap(({ headAheadSeconds }) => (headAheadSeconds === undefined ? [] : [-headAheadSeconds]))
  const youngest = Math.min(...ages)
  return ages.length === 0 || youngest <= ahead
    ? []
    : [
        {
          key: "clock ahead",
          summary: `every chain's head seems ${Math.round(youngest)} seconds old: this machine's clock is ahead`,
          remedy: "let chrony or systemd-timesyncd set it: payments end early",
          patience: minutes(2)
        }
      ]
}

/** The patience decides how long one has failed: the times of its events are as wrong as the clock was. */
const ofEndpoints = (outcomes: ReadonlyArray<EndpointOutcome>): ReadonlyArray<Condition> =>
  outcomes
    .flatMap(({ endpoint, failing, mode }) => (mode === "live" && failing !== undefined ? [{ endpoint, failing }] : []))
    .sort((one, next) => one.failing.sequence - next.failing.sequence)
    .slice(0, mostEndpoints)
    .map(({ endpoint, failing }) => ({
      key: `endpoint ${endpoint}`,
      summary: `${endpoint} receives nothing: the first event that has not arrived is of ${iso(failing.at)}`,
      remedy: `tilld webhooks list --status failing --endpoint ${endpoint} shows what it answers: tell its merchant`,
      patience: minutes(3)
    }))

/** Refused sales wake the operator at once; those that will be refused come as soon as they are likely. */
const ofQuotas = (accounts: ReadonlyArray<CloseAccount>): ReadonlyArray<Condition> =>
  accounts.map(({ account, level, remedy, summary }) => ({
    key: `quota ${level} ${account}`,
    summary,
    remedy,
    patience: 0
  }))

/** The faults that a check finds now. While the store cannot be read, its last result stays valid. */
export const makeConditions = Effect.gen(function* () {
  const chains = yield* Chains
  const workers = yield* Workers
  const reader = yield* Reader
  const { accounts, chains: networks, database, sweep } = yield* Settings
  const prices = yield* Prices
  const uncollected = yield* Uncollected

  const ofWorkers = Effect.map(workers.health, (health) =>
    health.flatMap(({ name, ready, reason = "it is not ready" }) =>
      ready
        ? []
        : [
            {
              key: `worker ${name}`,
              summary: name === "store" ? `the database takes no writes: ${reason}` : `the worker ${name}: ${reason}`,
              remedy: "the log says why",
              patience: name === "store" ? 0 : minutes(2)
            }
          ]
    )
  )

  const ofExceptions = Effect.map(
    Effect.forEach(
      ExceptionKind.literals,
      (kind) => Effect.map(countOpenOfKind(reader, "live", kind), (count) => ({ kind, count })),
      { concurrency: 1 }
    ),
    (counts) =>
      counts
        .filter(({ count }) => count > 0)
        .map(({ count, kind }) => ({
          key: `exceptions ${kind}`,
          summary: `exceptions of the kind ${kind} that wait for a decision: ${count}`,
          remedy: "tilld payments exceptions lists them",
          patience: 0
        }))
  )

  const ofDisk = Effect.sync((): ReadonlyArray<Condition> => {
    const free = freeBytes(dirname(database.path))
    return free === undefined || free >= leastFree
      ? []
      : [
          {
            key: "disk",
            summary: `the disk of the database has ${Math.round(free / 1e6)} MB left`,
            remedy: "free some space: a full disk stops payments",
            patience: minutes(1)
          }
        ]
  })

  /** Without what has no price: no one is told of a sum that is not known. */
  const ofUncollected = (): ReadonlyArray<Condition> => {
    const most = BigDecimal.unsafeFromString(sweep.remindUsd)
    if (BigDecimal.isZero(most)) return []
    const worths = uncollected
      .waiting()
      .flatMap((row) => (row.mode === "live" ? (worthOfWaiting(networks, prices.usd, row) ?? []) : []))
    const sum = BigDecimal.sumAll(worths)
    return BigDecimal.lessThanOrEqualTo(sum, most)
      ? []
      : [
          {
            key: "uncollected",
            summary: `more than ${sweep.remindUsd} USD of live money wait to be collected: about ${BigDecimal.scale(sum, 0).value}`,
            remedy: "tilld addresses --unswept shows where, and tilld sweep plan begins to collect it",
            patience: 0
          }
        ]
  }

  const ofBackup = (last: number | undefined, now: number): ReadonlyArray<Condition> =>
    last === undefined || backupAge(last, now) <= minutes(oldestBackup)
      ? []
      : [
          {
            key: "backup",
            summary: `the last good backup is of ${iso(last)}${last > now ? ", when this machine's clock was ahead" : ""}`,
            remedy: "journalctl -u tilld-backup says why none has been made since",
            patience: 0
          }
        ]

  let levels: ReadonlyMap<AccountId, QuotaLevel> = new Map()
  const quotas = Effect.map(UsageRepo.all(reader, accounts.quotaBytes), (usages) => {
    const close = closeAccounts(usages, levels)
    levels = levelsOf(close)
    return ofQuotas(close)
  })

  let stored: ReadonlyArray<Condition> = []
  const look = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const live = (yield* chains.health).filter(({ mode }) => mode === "live")
    const read = Effect.gen(function* () {
      return [...(yield* ofExceptions), ...ofEndpoints(yield* outcomesOf(reader)), ...(yield* quotas)]
    })
    stored = yield* Effect.orElseSucceed(read, () => stored)
    return [
      ...(yield* ofWorkers),
      ...live.flatMap(ofChain),
      ...ofClock(live),
      ...(yield* ofDisk),
      ...ofUncollected(),
      ...ofBackup(yield* lastBackupAt(database.path), now),
      ...stored
    ]
  })
  return { look }
})
