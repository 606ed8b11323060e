/** What is wrong now, by all that the daemon knows without a call to anybody. */
import { dirname } from "node:path"
import { BigDecimal, Clock, Duration, Effect } from "effect"
import ipaddr from "ipaddr.js"
import * as UsageRepo from "../Auth/UsageRepo.ts"
import { closeAccounts, levelsOf, type QuotaLevel } from "../Auth/UsageRepo.ts"
import { backupAge, lastBackupAt } from "../Backup/lastBackup.ts"
import { type ChainHealth, Chains } from "../Chains.ts"
import { splitRemedy } from "../Domain/ApiError.ts"
import { networkKey } from "../Domain/Chain.ts"
import { ExceptionKind } from "../Domain/Exception.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { iso } from "../lib/moment.ts"
import { bytesText } from "../lib/quantities.ts"
import { Uncollected, worthOfWaiting } from "../Payments/addresses/Uncollected.ts"
import { countOpenOfKind } from "../Payments/ExceptionsRepo.ts"
import { Prices, unread } from "../Quotes/Prices.ts"
import { Settings } from "../Settings.ts"
import { freeBytes } from "../Sql/nativeParts.ts"
import { oneValue, Reader } from "../Sql.ts"
import { type WorkerHealth, Workers } from "../Telemetry/Workers.ts"
import { Dispatcher } from "../Webhooks/Dispatcher.ts"
import { type EndpointOutcome, outcomesOf } from "../Webhooks/queue/EndpointsRepo.ts"
import { makeConfiguration } from "./configuration.ts"
import type { ConditionKind } from "./kinds.ts"
import { lookAtMoney } from "./money.ts"
import { makeNodes } from "./nodes.ts"
import { type Condition, conditionIf, conditionOf } from "./standing.ts"

/** Minimum free bytes on the disk of the database. */
export const leastFree = 1e9
/** An hour more than a day, in which a daily backup may be late. Milliseconds. */
const oldestBackup = 25 * 3_600_000
/** How far the clock may be behind a chain's, and how old every chain's head may seem, in seconds. */
const behind = 30
const ahead = 300
/** How long a due webhook may wait for its attempt. Milliseconds. */
const longestDue = 120_000
/** Maximum number of failing endpoints that are reported one by one, longest failing first. */
const mostEndpoints = 20
const setClock = "let chrony or systemd-timesyncd set it"

/** No one is woken for a test chain. */
const ofChain = (chain: ChainHealth): ReadonlyArray<Condition> => {
  const name = networkKey(chain)
  const { remedy = "tilld doctor says what is wrong with its providers", wrong } = splitRemedy(
    chain.reason ?? "it is behind"
  )
  const of = (kind: ConditionKind, summary: string, what = remedy, subject = name) =>
    conditionOf(kind, subject, summary, what, chain.mode === "test" ? "note" : undefined)
  const alone = chain.decidesAloneSeconds
  return [
    ...(chain.ready ? [] : [of("chain_not_read", `${name} is not read, and payments on it wait: ${wrong}`)]),
    ...(alone === undefined
      ? chain.ready && chain.reason !== undefined
        ? [of("chain_troubled", `${name}: ${wrong}`)]
        : []
      : [
          of(
            "provider_decides_alone",
            `one provider decides alone on ${name}: no other has responded for ${Math.round(alone / 60)} minutes`,
            "tilld doctor says what is wrong with the others; add another provider to rpc_urls"
          )
        ]),
    ...chain.providers.flatMap(({ healthy, host, limited, reason = "it is unhealthy" }, place) => {
      const subject = `${name} ${place}`
      const refuses = `${host} refuses calls for ${name} as too many`
      if (limited) return [of("provider_limited", refuses, "take a larger plan there, or add a provider", subject)]
      if (healthy) return []
      const { remedy = "tilld doctor; if it lasts, put another provider in its place in rpc_urls", wrong } =
        splitRemedy(reason)
      return [of("provider_unused", `${host} is not used for ${name}: ${wrong}`, remedy, subject)]
    })
  ]
}

/** The clock by the heads of chains: behind one, or ahead of every live one. */
export const ofClock = (
  chains: ReadonlyArray<Pick<ChainHealth, "chain" | "headAheadSeconds" | "mode">>
): ReadonlyArray<Condition> => {
  const heads = chains.flatMap(({ headAheadSeconds: lead, ...network }) =>
    lead === undefined ? [] : [{ lead, network }]
  )
  const late = heads.filter(({ lead }) => lead > behind)
  const ages = heads.flatMap(({ lead, network: { mode } }) => (mode === "live" ? [-lead] : []))
  const youngest = Math.min(...ages)
  const summary = `every chain's head seems ${Math.round(youngest)} seconds old: this machine's clock is ahead, and payments end early`
  return [
    ...late.map(({ lead, network }) => {
      const name = networkKey(network)
      const what = `this machine's clock is ${Math.round(lead)} seconds behind ${name}: payments end late`
      return conditionOf("clock_behind", name, what, setClock, network.mode === "test" ? "note" : undefined)
    }),
    ...conditionIf(ages.length > 0 && youngest > ahead, "clock_ahead", "", summary, setClock)
  ]
}

/** The patience decides how long one has failed: the times of its events are as wrong as the clock was. */
const ofEndpoints = (outcomes: ReadonlyArray<EndpointOutcome>): ReadonlyArray<Condition> =>
  outcomes
    .flatMap(({ endpoint, failing, mode }) => (mode === "live" && failing !== undefined ? [{ endpoint, failing }] : []))
    .sort((one, next) => one.failing.sequence - next.failing.sequence)
    .slice(0, mostEndpoints)
    .map(({ endpoint, failing }) =>
      conditionOf(
        "endpoint_receives_nothing",
        endpoint,
        `${endpoint} receives nothing: the first event that has not arrived is of ${iso(failing.at)}`,
        `tilld webhooks list --status failing --endpoint ${endpoint} shows what it answers: tell its merchant`
      )
    )

const ofWorker = ({ name, ready, reason = "it is not ready" }: WorkerHealth): Condition => {
  const { remedy = "the log says why", wrong } = splitRemedy(reason)
  return ready
    ? conditionOf("worker_warns", name, `the worker ${name}: ${wrong}`, remedy)
    : name === "store"
      ? conditionOf("store_refuses_writes", "", `the database takes no writes: ${wrong}`, remedy)
      : conditionOf("worker_hangs", name, `the worker ${name}: ${wrong}`, remedy)
}

/** Whether strangers may reach a host: every address of the machine, or a public one. */
const isExposed = (host: string): boolean =>
  ipaddr.isValid(host) && ["unspecified", "unicast"].includes(ipaddr.process(host).range())

/** Goods may have been sent without money, or money taken without goods. */
const pressing: ReadonlySet<ExceptionKind> = new Set(["found_late", "reorged", "unknown_payment"])

/** Free bytes now and then, every ten minutes of the last six hours: what the disk loses. */
const sampled = Duration.toMillis("10 minutes")
const mostSamples = 36
/** Fewer say nothing about the rate. */
const leastSamples = 6

interface Sample {
  readonly at: number
  readonly free: number
}

/** Hours until the disk is full at the rate of the samples, oldest first; undefined where it does not fill up. */
export const hoursLeft = (samples: ReadonlyArray<Sample>, { at, free }: Sample): number | undefined => {
  const [oldest] = samples
  if (oldest === undefined || samples.length < leastSamples || free >= oldest.free || at <= oldest.at) return undefined
  return (free * (at - oldest.at)) / (oldest.free - free) / 3_600_000
}

/**
 * Makes the judgement of what is wrong now. While the store cannot be read, what was last read stays valid.
 *
 * @param ofOthers what workers of their own have found: at `server.public_url`, and in the files around the database
 */
export const makeJudge = Effect.fnUntraced(function* (ofOthers: () => ReadonlyArray<Condition>) {
  const chains = yield* Chains
  const workers = yield* Workers
  const reader = yield* Reader
  const settings = yield* Settings
  const { accounts, admin, alerts, chains: networks, database, postgres, server, sweep } = settings
  const prices = yield* Prices
  const dispatcher = yield* Dispatcher
  const uncollected = yield* Uncollected
  const isLive = networks.some(({ mode }) => mode === "live")

  const ofExceptions = Effect.map(
    Effect.forEach(
      ExceptionKind.literals,
      (kind) => Effect.map(countOpenOfKind(reader, "live", kind), (count) => ({ kind, count })),
      { concurrency: 1 }
    ),
    (counts) =>
      counts
        .filter(({ count }) => count > 0)
        .map(({ count, kind }) =>
          conditionOf(
            pressing.has(kind) ? "exceptions_pressing" : "exceptions_open",
            kind,
            `exceptions of the kind ${kind} that wait for a decision: ${count}`,
            "tilld payments exceptions lists them"
          )
        )
  )

  let samples: ReadonlyArray<Sample> = []
  const ofDisk = (at: number): ReadonlyArray<Condition> => {
    const free = freeBytes(dirname(database.path))
    if (free === undefined) return []
    const now = { at, free }
    const last = samples.at(-1)
    // A clock that was set back begins anew.
    if (last !== undefined && at < last.at) samples = []
    if (last === undefined || Math.abs(at - last.at) >= sampled) samples = [...samples, now].slice(-mostSamples)
    const hours = hoursLeft(samples, now) ?? Number.POSITIVE_INFINITY
    const remedy = "free some space, or move database.path: a full disk stops payments"
    const left = `the disk of ${dirname(database.path)} has ${bytesText(free)} left`
    const soon = `${left}, and is full in ${Math.floor(hours)} hours`
    return [
      ...conditionIf(free < leastFree, "disk_low", "", left, remedy),
      ...conditionIf(hours < 24, "disk_filling", "", soon, remedy)
    ]
  }

  /** Without what has no price: no one is told of a sum that is not known. */
  const ofUncollected = (): ReadonlyArray<Condition> => {
    const most = BigDecimal.unsafeFromString(sweep.remindUsd)
    if (BigDecimal.isZero(most)) return []
    const worths = uncollected
      .waiting()
      .flatMap((row) => (row.mode === "live" ? (worthOfWaiting(networks, prices.usd, row) ?? []) : []))
    const sum = BigDecimal.sumAll(worths)
    const about = `about ${BigDecimal.scale(sum, 0).value}`
    const summary = `more than ${sweep.remindUsd} USD of live money wait to be collected: ${about}`
    const remedy = "tilld addresses --unswept shows where, and tilld sweep plan begins to collect it"
    return conditionIf(BigDecimal.greaterThan(sum, most), "uncollected", "", summary, remedy)
  }

  const ofBackup = (
    last: number | undefined,
    firstEvent: number | undefined,
    now: number
  ): ReadonlyArray<Condition> => {
    if (last === undefined) {
      if (!isLive || firstEvent === undefined) return []
      const summary = `no backup was ever made, and the database has events from ${iso(firstEvent)} on`
      const remedy = "systemctl enable --now tilld-backup.timer, or a timer of your own: docs/backup.md"
      return conditionIf(now - firstEvent > oldestBackup, "backup_missing", "", summary, remedy)
    }
    const when = last > now ? ", when this machine's clock was ahead" : ""
    const remedy = "journalctl -u tilld-backup says why none has been made since"
    const summary = `the last good backup is of ${iso(last)}${when}`
    return conditionIf(backupAge(last, now) > oldestBackup, "backup_old", "", summary, remedy)
  }

  /** Currencies that had a price since the start: others may have no source, and nobody misses them. */
  const priced = new Set<string>()
  const ofPrices = (): ReadonlyArray<Condition> => {
    const all = prices.status()
    for (const { price, symbol } of all) if (price !== undefined) priced.add(symbol)
    const of = (subject: string, what: string, reason = unread) => {
      const remedy = "tilld doctor says what each source answers"
      return conditionOf("no_price", subject, `${what} has a price: ${reason}`, remedy, isLive ? undefined : "note")
    }
    const lost = all.filter(({ price }) => price === undefined)
    // The sources are out of reach, maybe since before the start: that is one condition.
    if (lost.length === all.length)
      return lost.slice(0, 1).flatMap(({ reason }) => (reason === unread ? [] : [of("", "no currency", reason)]))
    return lost.flatMap(({ reason, symbol }) => (priced.has(symbol) ? [of(symbol, `${symbol} no longer`, reason)] : []))
  }

  let levels: ReadonlyMap<AccountId, QuotaLevel> = new Map()
  const ofQuotas = Effect.map(UsageRepo.all(reader, accounts.quotaBytes), (usages) => {
    const close = closeAccounts(usages, levels)
    levels = levelsOf(close)
    return close.map(({ account, level, remedy, summary }) => conditionOf(`quota_${level}`, account, summary, remedy))
  })

  const ofDeliveries = Effect.map(dispatcher.health, ({ oldestDueMillis }) =>
    conditionIf(
      oldestDueMillis > longestDue,
      "deliveries_wait",
      "",
      `webhooks have been due for ${Math.round(oldestDueMillis / 1000)} seconds and are not attempted`,
      "a receiver hangs, or the concurrency limit is reached: see the backlog by endpoint on /metrics"
    )
  )

  const configuration = yield* makeConfiguration
  const nodes = makeNodes(settings, reader)
  const untold = conditionIf(
    alerts.url === "" && admin === undefined && isLive,
    "nobody_is_told",
    "",
    "nobody is told of what is wrong",
    "set alerts.url, or let Prometheus read [admin]"
  )
  const exposed = conditionIf(
    isExposed(server.host) && server.trustedProxies.length === 0 && isLive,
    "no_proxy",
    "",
    `nothing stands in front of ${server.host}:${server.port}: no TLS, and no limits by address`,
    "put a proxy there (config/proxy), in server.trusted_proxies, and let server.host be an address that it alone reaches"
  )
  let stored: ReadonlyArray<Condition> = []
  const look = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const all = yield* chains.health
    const lastBackup = yield* lastBackupAt(database.path)
    const read = Effect.gen(function* () {
      const first = yield* oneValue<number>(reader, "SELECT created_at FROM events ORDER BY sequence LIMIT 1")
      return [
        ...(yield* ofExceptions),
        ...ofEndpoints(yield* outcomesOf(reader)),
        ...(yield* ofQuotas),
        ...(yield* ofDeliveries),
        ...(yield* lookAtMoney(settings, prices, reader)),
        ...(postgres === undefined ? ofBackup(lastBackup, first, now) : yield* nodes),
        ...(yield* configuration.conditions)
      ]
    })
    stored = yield* Effect.orElseSucceed(read, () => stored)
    return [
      ...(yield* workers.health).filter(({ ready, reason }) => !ready || reason !== undefined).map(ofWorker),
      ...all.flatMap(ofChain),
      ...ofClock(all),
      ...(postgres === undefined ? ofDisk(now) : []),
      ...ofUncollected(),
      ...ofPrices(),
      ...ofOthers(),
      ...untold,
      ...exposed,
      ...stored
    ]
  })
  return { look }
})
