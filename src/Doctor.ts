/**
 * What `tilld doctor` checks: providers, token contracts, wallets, prices, clock, disk, database, address numbering, master
 * key and the read-only socket. It changes nothing, and works with a running daemon as well as without one. Each check
 * gives findings, which are never secret; a check that cannot be made is a finding too. Called by commands/doctor.ts.
 */
import { Effect } from "effect"
import { examineCost, examinePolicies, examineTokens, examineWallet } from "./Doctor/chains.ts"
import { type Finding, failedCall } from "./Doctor/Finding.ts"
import {
  examineClock,
  examineDatabase,
  examineDisk,
  examineMasterKey,
  examineNumbering,
  lookAtMark
} from "./Doctor/machine.ts"
import { examinePrices } from "./Doctor/prices.ts"
import { examineProviders, type Seen } from "./Doctor/providers.ts"
import { examineReadSocket } from "./Doctor/readSocket.ts"
import { modes, networkKey } from "./Domain/Chain.ts"
import type { ChainSettings, SettingsShape, SettingsSource } from "./Settings.ts"

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

/** All findings for a configuration, grouped by what was checked. `env` may name the master key. */
export const examine = Effect.fn("Doctor.examine")(function* (settings: SettingsShape, env: SettingsSource["env"]) {
  const chains = yield* Effect.forEach(settings.chains, examineChain, { concurrency: "unbounded" })
  const reached = chains.flatMap(({ chain, usable }) => usable.slice(0, 1).map((seen) => [chain, seen] as const))
  const mark = yield* lookAtMark(settings)
  const store = yield* examineDatabase(settings)
  const nextIndex = (fingerprint: string) => store.nextIndexes.get(fingerprint) ?? 0
  const wallets = yield* Effect.forEach(modes, (mode) => examineWallet(settings, mode, nextIndex, reached), {
    concurrency: "unbounded"
  })
  const prices = yield* examinePrices(settings)
  const urls = settings.chains.flatMap(({ rpcUrls }) => rpcUrls.slice(0, 1))
  const seen: ReadonlyArray<Seen> = chains.flatMap(({ usable }) => usable)
  const findings: ReadonlyArray<Finding> = [
    ...chains.flatMap((chain) => chain.findings),
    ...wallets.flat(),
    ...prices,
    yield* examineClock(settings, urls, seen),
    yield* examineDisk(settings),
    ...store.findings,
    yield* examineNumbering(settings, mark, store),
    yield* examineMasterKey(settings, env, store.keyFingerprint),
    ...(yield* examineReadSocket(settings))
  ]
  return findings
})
