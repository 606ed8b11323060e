/**
 * What `tilld doctor` checks: the daemon, providers, token contracts, wallets, prices, clock, disk, database and what it
 * says of money and webhooks, address numbering, backup, certificates, permissions, master key and the read-only socket. It
 * changes nothing, and works with a running daemon as well as without one. Each check gives findings, which are never
 * secret; a check that cannot be made is a finding too. Called by commands/doctor.ts.
 */

import { statSync } from "node:fs"
import { connect } from "node:net"
import { dirname } from "node:path"
import { Array, BigDecimal, Effect, Either, Schema } from "effect"
import { examineCertificates } from "./Doctor/certificates.ts"
import { examineCost, examinePolicies, examineTokens, examineWallet } from "./Doctor/chains.ts"
import {
  type AskedDaemon,
  examineDaemon,
  examineDown,
  isHealth,
  mayOpen,
  type Silent,
  withoutAnswer
} from "./Doctor/daemon.ts"
import { type Finding, fail, failedCall, ok, warn } from "./Doctor/Finding.ts"
import {
  examineClock,
  examineDisk,
  examineMasterKey,
  examineNumbering,
  examineReplaced,
  lookAtMark
} from "./Doctor/machine.ts"
import { examinePermissions } from "./Doctor/permissions.ts"
import { examinePostgres } from "./Doctor/postgres.ts"
import { examineProviders } from "./Doctor/providers.ts"
import { lookAtStore, nextAfter, otherDatabase, overtakenWallets } from "./Doctor/storeFacts.ts"
import { examineNeeds, examineSeed, examineUse } from "./Doctor/storeFindings.ts"
import { modes, networkKey } from "./Domain/Chain.ts"
import { reachable, readinessDeadline, readReadiness } from "./Http/readReadiness.ts"
import { lossOf } from "./Payments/addresses/IndexMark.ts"
import { type PriceStatus, readPrices } from "./Quotes/Prices.ts"
import { ageText } from "./Quotes/sources/PriceSource.ts"
import { showDecimal } from "./Quotes/sources/rate.ts"
import type { ChainSettings, SettingsShape, SettingsSource } from "./Settings.ts"

const Readiness = Schema.Struct({
  workers: Schema.Array(Schema.Struct({ name: Schema.String, ready: Schema.Boolean }))
})

/**
 * The daemon whose database was removed or moved with its other files, so that neither its socket nor its lock can be
 * found: it still listens at its port, and reports that its store takes no writes. Undefined where none does.
 */
const withLostFiles = (settings: SettingsShape): Effect.Effect<Silent | undefined> =>
  Effect.map(readReadiness(settings, Readiness), (readiness) => {
    const { database, server } = settings
    return readiness?.workers.some(({ name, ready }) => name === "store" && !ready)
      ? {
          silent:
            `a tilld listens on ${server.host}:${server.port}, and its database is not at ${database.path}: that was removed or ` +
            "moved while tilld has it open, and only this process has it",
          remedy:
            "put the same files back, and tilld goes on; if they were deleted, copy the database and its -wal out of " +
            "/proc/PID/fd before tilld is stopped (ss -ltnp shows PID)"
        }
      : undefined
  })

/** Whether something else listens where a start would. For where no daemon runs. */
export const examinePort = ({ server: { host, port } }: SettingsShape): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.async<boolean>((resume) => {
    const socket = connect({ host: reachable(host), port })
    socket.once("connect", () => resume(Effect.succeed(true))).once("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => socket.destroy())
  }).pipe(
    Effect.timeoutTo({ duration: readinessDeadline, onTimeout: () => false, onSuccess: (isTaken) => isTaken }),
    Effect.map((isTaken) =>
      isTaken
        ? [
            fail(
              "port",
              `another process listens on ${host}:${port}`,
              "end it (ss -ltnp shows it), or change server.port"
            )
          ]
        : []
    ),
    Effect.when(() => port !== 0),
    Effect.map((found) => (found._tag === "Some" ? found.value : []))
  )

const percent = BigDecimal.make(100n, 0)
const shownPercent = (part: BigDecimal.BigDecimal): string =>
  `${showDecimal(BigDecimal.round(BigDecimal.multiply(part, percent), { scale: 2 }))} %`

const findingOf = ({ age, fresh, price, reason, source, spread, symbol }: PriceStatus): Finding => {
  const name = `price of ${symbol}`
  if (price === undefined || age === undefined) {
    const remedy =
      "quotes in it are refused meanwhile; rates.sources has the sources, and Chainlink needs a chain in live mode"
    return fail(name, reason ?? "there is none", remedy)
  }
  const shown = `${showDecimal(price)} USD by ${source}, ${ageText(age)} old`
  return spread === undefined
    ? warn(
        name,
        `${shown}, and no other source has it${reason === undefined ? "" : ` (${reason})`}`,
        "add another source to rates.sources, or an ethereum in live mode, where it has one: docs/prices.md"
      )
    : ok(name, `${shown}; ${fresh.join(", ")} are ${shownPercent(spread)} apart`)
}

/** A price that the operator has configured: no source can confirm it. */
const fixedFinding = (symbol: string, price: BigDecimal.BigDecimal, live: boolean): Finding => {
  const name = `price of ${symbol}`
  const shown = `${showDecimal(price)} USD, as configured`
  return live
    ? warn(
        name,
        `${shown}, and live payments are quoted at it`,
        'use ["chainlink", "coinbase", "kraken"] as rates.sources'
      )
    : ok(name, shown)
}

/** All currencies without a configured price: many shops need few of them. */
const unpriced = (symbols: ReadonlyArray<string>): Finding =>
  warn(
    "prices",
    `none is configured for ${symbols.join(", ")}: quotes in them are refused`,
    "add those that you need to [rates.fixed]"
  )

/** Checks the price of each currency as a daemon that starts now would get it. */
export const examinePrices = Effect.fn("Doctor.prices")(function* (settings: SettingsShape) {
  const prices = yield* readPrices(settings)
  const live = settings.chains.some(({ mode }) => mode === "live")
  if (!settings.rates.sources.includes("fixed")) return prices.status().map(findingOf)
  const [without, priced] = Array.partitionMap(prices.status(), ({ price, symbol }) =>
    price === undefined ? Either.left(symbol) : Either.right(fixedFinding(symbol, price, live))
  )
  return without.length === 0 ? priced : [...priced, unpriced(without)]
})

const setgid = 0o2000
const remedy = "install -d -m 2750 -o tilld -g tilld-read the folder, or use systemd/tilld.tmpfiles.conf"

/** Checks that the folder of the read-only socket gives it a group of its own. No finding where none is configured. */
export const examineReadSocket = ({ control: { readSocket } }: SettingsShape) =>
  Effect.sync((): ReadonlyArray<Finding> => {
    if (readSocket === "") return []
    const name = "read socket"
    const folder = dirname(readSocket)
    const found = Either.try(() => statSync(folder))
    if (Either.isLeft(found)) return [warn(name, `${folder} cannot be entered: no one can use ${readSocket}`, remedy)]
    const { mode } = found.right
    return (mode & setgid) === 0
      ? [warn(name, `${folder} is not setgid: ${readSocket} gets the daemon's own group`, remedy)]
      : [ok(name, `${readSocket} is for the group of ${folder}, whose members may run commands that only read`)]
  })

export type { AskedDaemon } from "./Doctor/daemon.ts"
export type { Finding } from "./Doctor/Finding.ts"

/** Checks a chain: its providers, tokens, finality policies and daily cost. */
const examineChain = Effect.fn("Doctor.chain")(function* (chain: ChainSettings) {
  const { findings, usable } = yield* examineProviders(chain)
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
  const chains = yield* Effect.forEach(settings.chains, examineChain, { concurrency: "unbounded" })
  const reached = chains.flatMap(({ chain, usable }) => usable.slice(0, 1).map((seen) => [chain, seen] as const))
  // Before the database: a running daemon writes the mark after it.
  const mark = yield* lookAtMark(settings, daemon)
  const { facts, findings: store } =
    settings.postgres !== undefined
      ? { facts: undefined, findings: yield* examinePostgres(settings.postgres, source.env) }
      : yield* Effect.sync(() =>
          mayOpen(daemon)
            ? lookAtStore(
                path,
                daemon !== undefined,
                settings.chains,
                daemon === undefined ? lossOf({ path, markFolder: mark.folder }) : undefined
              )
            : { facts: undefined, findings: [] }
        )
  const overtaken =
    facts === undefined
      ? []
      : overtakenWallets(settings, mark.folder, {
          nexts: Object.fromEntries([...facts.wallets].map(([wallet, { next }]) => [wallet, next])),
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
    // A daemon judges these by itself.
    ...(daemon === undefined ? examineClock(reached) : []),
    ...(daemon === undefined && settings.postgres === undefined ? [yield* examineDisk(settings)] : []),
    ...(yield* examineReplaced(settings)),
    ...(facts === undefined
      ? []
      : [
          ...examineNeeds(settings.chains, facts),
          ...examineUse(facts),
          ...examineSeed(settings, facts),
          yield* examineNumbering(mark, facts, daemon),
          ...overtaken.map(otherDatabase)
        ]),
    ...(yield* examineCertificates(settings)),
    ...(yield* examineReadSocket(settings))
  ]
  return daemon === undefined ? [...findings, examineDown(settings, findings)] : findings
})
