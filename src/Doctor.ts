/**
 * What `tilld doctor` checks: the daemon, providers, token contracts, wallets, prices, clock, disk, database and what it
 * says of money and webhooks, address numbering, backup, certificates, permissions, master key and the read-only socket. It
 * changes nothing, and works with a running daemon as well as without one. Each check gives findings, which are never
 * secret; a check that cannot be made is a finding too. Called by commands/doctor.ts.
 */
import { Clock, Effect } from "effect"
import { lastBackupAt } from "./Backup/lastBackup.ts"
import { examineCertificates, examinePublicUrl } from "./Doctor/certificates.ts"
import { examineCost, examinePolicies, examineTokens, examineWallet } from "./Doctor/chains.ts"
import { type AskedDaemon, examineDaemon, examineDown, isHealth, mayOpen, withoutAnswer } from "./Doctor/daemon.ts"
import { type Finding, failedCall, warn } from "./Doctor/Finding.ts"
import {
  examineClock,
  examineDisk,
  examineMasterKey,
  examineNumbering,
  examineTrend,
  isOfNow,
  lookAtMark
} from "./Doctor/machine.ts"
import { nextAfter, otherDatabase, overtakenWallets } from "./Doctor/otherDatabases.ts"
import { examinePermissions } from "./Doctor/permissions.ts"
import { examinePort, withLostFiles } from "./Doctor/port.ts"
import { examinePrices } from "./Doctor/prices.ts"
import { examineProviders, type Seen } from "./Doctor/providers.ts"
import { examineReadSocket } from "./Doctor/readSocket.ts"
import { lookAtStore, readFirstBlocks } from "./Doctor/storeFacts.ts"
import {
  examineBackup,
  examineEndpoints,
  examineExceptions,
  examineNeeds,
  examineQuotas,
  examineSeed,
  examineTimes,
  examineUse
} from "./Doctor/storeFindings.ts"
import { modes, networkKey } from "./Domain/Chain.ts"
import { lossOf } from "./Payments/addresses/lostDatabase.ts"
import type { ChainSettings, SettingsShape, SettingsSource } from "./Settings.ts"

export type { AskedDaemon } from "./Doctor/daemon.ts"
export type { Finding } from "./Doctor/Finding.ts"

/** Checks a chain: its providers, tokens, finality policies and daily cost. */
const examineChain = Effect.fn("Doctor.chain")(function* (chain: ChainSettings, firstBlock: string | undefined) {
  const { findings, usable } = yield* examineProviders(chain, firstBlock)
  const [seen] = usable
  if (seen === undefined) return { chain, usable, findings }
  const tokens = yield* examineTokens(chain, seen)
  const policies = yield* examinePolicies(chain, usable)
  const name = `${networkKey(chain)} cost`
  const cost = yield* Effect.catchAll(examineCost(chain, seen), (error) =>
    Effect.succeed(failedCall(name, error, "ask another provider"))
  )
  return { chain, usable, findings: [...findings, ...tokens, ...policies, cost] }
})

/** What one provider says of money is checked by no other. */
const examineSole = (chain: ChainSettings): ReadonlyArray<Finding> => {
  const [, second] = chain.rpcUrls
  if (second !== undefined) return []
  const name = `${networkKey(chain)} providers`
  return [
    warn(
      name,
      "there is one only: nobody checks what it says, and its outage is the chain's",
      "add one of another company to rpc_urls"
    )
  ]
}

/** All findings for a configuration and its daemon, grouped by what was checked. `source.env` may name the master key. */
export const examine = Effect.fn("Doctor.examine")(function* (
  settings: SettingsShape,
  source: SettingsSource,
  asked: AskedDaemon
) {
  const { path } = settings.database
  const daemon = isHealth(asked) ? asked : (withoutAnswer(path, asked) ?? (yield* withLostFiles(settings)))
  const firstBlocks = yield* Effect.sync(() =>
    mayOpen(daemon) ? readFirstBlocks(path, daemon !== undefined) : new Map<string, string>()
  )
  const chains = yield* Effect.forEach(
    settings.chains,
    (chain) => examineChain(chain, firstBlocks.get(networkKey(chain))),
    { concurrency: "unbounded" }
  )
  const reached = chains.flatMap(({ chain, usable }) => usable.slice(0, 1).map((seen) => [chain, seen] as const))
  // Before the database: a running daemon writes the mark after it.
  const mark = yield* lookAtMark(settings, daemon)
  const now = yield* Clock.currentTimeMillis
  const { facts, findings: store } = yield* Effect.sync(() =>
    mayOpen(daemon)
      ? lookAtStore(
          path,
          daemon !== undefined,
          now,
          { quotaBytes: settings.accounts.quotaBytes, chains: settings.chains },
          daemon === undefined ? lossOf({ path, markFolder: mark.folder }) : undefined
        )
      : { facts: undefined, findings: [] }
  )
  const overtaken =
    facts === undefined
      ? []
      : overtakenWallets(settings, mark.folder, {
          nexts: Object.fromEntries(Array.from(facts.wallets, ([wallet, { next }]) => [wallet, next])),
          ofAccounts: facts.accountWallets
        })
  const nextIndex = (fingerprint: string): number => {
    const other = overtaken.find(({ wallet }) => wallet === fingerprint)
    return other === undefined ? (facts?.wallets.get(fingerprint)?.next ?? 0) : nextAfter(other)
  }
  // Of a damaged database nobody knows which addresses it has given out.
  const wallets =
    facts === undefined
      ? []
      : yield* Effect.forEach(modes, (mode) => examineWallet(settings, mode, nextIndex, reached), {
          concurrency: "unbounded"
        })
  const prices = yield* examinePrices(settings)
  const urls = settings.chains.flatMap(({ rpcUrls }) => rpcUrls.slice(0, 1))
  const seen: ReadonlyArray<Seen> = chains.flatMap(({ usable }) => usable)
  const findings: ReadonlyArray<Finding> = [
    ...(daemon === undefined ? yield* examinePort(settings) : examineDaemon(daemon)),
    // What keeps a daemon from its start comes first.
    ...store,
    ...(yield* examineMasterKey(settings, source, daemon, facts)),
    ...examinePermissions(
      source,
      { ...settings, database: { path, markFolder: mark.folder } },
      isHealth(daemon) ? daemon.uid : undefined
    ),
    ...chains.flatMap((chain) => [...chain.findings, ...examineSole(chain.chain)]),
    ...wallets.flat(),
    ...prices,
    yield* examineClock(settings, urls, seen),
    yield* examineDisk(settings),
    ...(facts === undefined
      ? []
      : [
          ...examineNeeds(settings.chains, facts),
          examineExceptions(facts),
          ...examineQuotas(facts.usages),
          ...examineEndpoints(facts),
          ...examineUse(facts),
          ...examineSeed(settings, facts),
          ...examineTimes(facts, now, isOfNow(now, seen)),
          ...(yield* examineTrend(settings, facts, now)),
          yield* examineNumbering(mark, facts, daemon),
          ...overtaken.map(otherDatabase)
        ]),
    examineBackup(yield* lastBackupAt(path), now),
    ...(yield* examineCertificates(settings)),
    ...(yield* examinePublicUrl(settings)),
    ...(yield* examineReadSocket(settings))
  ]
  return daemon === undefined ? [...findings, examineDown(settings, findings)] : findings
})
