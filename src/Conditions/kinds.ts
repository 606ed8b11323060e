/**
 * What can be wrong, each kind once: the daemon judges it, and log, alerts, metrics, `/readyz`, the portal, `tilld status` and
 * `tilld doctor` print it. docs/runbook.md says what to do about each.
 */
import { type Duration, Schema } from "effect"
import type { Severity } from "../Domain/Condition.ts"

export interface Kind {
  readonly severity: Severity
  /** How long it must hold before it is told. */
  readonly patience: Duration.DurationInput
  /** What is wrong. */
  readonly about: string
  /** What it does to the two questions of an operator: are sales refused, is money missed? */
  readonly asks: "sales" | "money" | undefined
}

const of =
  (severity: Severity) =>
  (patience: Duration.DurationInput, about: string, asks?: Kind["asks"]): Kind => ({ severity, patience, about, asks })
const [page, ticket, note] = [of("page"), of("ticket"), of("note")]

const all = {
  store_refuses_writes: page(0, "the database takes no writes: no payment can be created", "sales"),
  worker_hangs: page("2 minutes", "a worker has not ended its round"),
  worker_warns: ticket(0, "a worker that goes on has something to say, such as lines that its log lacks"),
  chain_not_read: page("5 minutes", "a live chain is not read: payments on it wait", "money"),
  chain_troubled: ticket(
    "10 minutes",
    "a live chain is read, and something is wrong with it, as when providers contradict each other"
  ),
  provider_decides_alone: ticket(0, "one of several providers decides alone, since no other has responded"),
  provider_unused: ticket(
    "5 minutes",
    "a provider of a live chain is not used: it does not respond, is behind, or serves another chain"
  ),
  provider_limited: ticket("5 minutes", "a provider of a live chain refuses calls as too many"),
  clock_behind: page("1 minute", "this machine's clock is 30 seconds or more behind a chain's: payments end late"),
  clock_ahead: page(
    "2 minutes",
    "this machine's clock is 5 minutes or more ahead of every chain's: payments end early",
    "money"
  ),
  endpoint_receives_nothing: page(
    "3 minutes",
    "a live webhook endpoint takes nothing: one condition for each of the 20 that have failed for longest"
  ),
  deliveries_wait: page("5 minutes", "webhooks have been due for more than two minutes and are not attempted"),
  quota_full: page(0, "an account has used its quota: its new payments are refused", "sales"),
  quota_near: ticket(0, "an account has used 80 % of its quota"),
  exceptions_pressing: page(
    0,
    "live money without goods, or goods without money: `found_late`, `reorged`, `unknown_payment`",
    "money"
  ),
  exceptions_open: ticket(0, "live money of another kind waits for a decision", "money"),
  money_unaccounted: page(
    0,
    "the audit of all addresses ever given out has found live money on a chain that is in no row of the ledger",
    "money"
  ),
  payments_wait: page(
    "1 minute",
    "a live payment is paid, its money is as deep as its chain asks, and for two minutes it was not confirmed",
    "money"
  ),
  payments_stopped: ticket(
    0,
    "no payment was confirmed on a live chain for six hours and three times the longest pause of the four weeks before",
    "money"
  ),
  no_price: page(
    "15 minutes",
    "there is no price any more in a currency that had one, or in none at all: quotes and invoices in it are refused",
    "sales"
  ),
  disk_low: page("1 minute", "less than 1 GB is left on the disk of the database"),
  disk_filling: page("10 minutes", "at the rate of the last hours the disk of the database is full within a day"),
  backup_missing: ticket(0, "tilld has run for more than a day, and no backup was ever made"),
  backup_old: ticket(0, "the last good backup is older than 25 hours"),
  backup_broken: page(0, "the newest backup is not as it was made: it could not be restored"),
  wal_long: ticket("10 minutes", "the database's write-ahead log has more than 64 MB: it is not checkpointed"),
  no_standby: ticket("5 minutes", "tilld is on PostgreSQL, and no other node waits to take over"),
  versions_differ: ticket("1 hour", "a node that waits has another version than the one that works"),
  lease_moves: page(0, "nodes have taken over more than three times within an hour", "sales"),
  replica_behind: ticket(
    "5 minutes",
    "a standby of PostgreSQL lacks more than 16 MB, or is gone: the loss of the primary would lose what it lacks"
  ),
  certificate_bad: page(
    "10 minutes",
    "the certificate at `server.public_url` has expired, or is of another name: browsers refuse the checkout",
    "sales"
  ),
  certificate_ends: ticket(0, "the certificate at `server.public_url` ends within 14 days"),
  proxy_gone: page("10 minutes", "nothing answers at `server.public_url`, which has answered before", "sales"),
  no_proxy: ticket(
    0,
    "tilld listens at every address of its machine, or at a public one, and no proxy is in `server.trusted_proxies`"
  ),
  configuration_differs: ticket(
    "10 minutes",
    "the configuration file differs from what tilld runs with, or cannot be used: the next start takes it, or is refused"
  ),
  wallet_changed: page(
    0,
    "a wallet of the configuration was replaced within the last 7 days, and no one has confirmed it"
  ),
  uncollected: ticket(0, "more live money than `sweep.remind_usd` waits to be collected"),
  alerts_not_taken: ticket(0, "alerts.url has refused a message twice, or did not answer"),
  nobody_is_told: note(0, "neither `[alerts]` nor `[admin]` is configured: nobody is told of what is wrong")
}

export type ConditionKind = keyof typeof all
export const ConditionKind = Schema.Literal(...(Object.keys(all) as ReadonlyArray<ConditionKind>))
export const kinds: Readonly<Record<ConditionKind, Kind>> = all
