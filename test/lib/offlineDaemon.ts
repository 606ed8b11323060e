import { randomBytes } from "node:crypto"
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { stringify } from "smol-toml"
import { createKey, type Installation, startDaemon, temporaryFolder, xpub } from "../bench/daemon.ts"

/** A daemon process for hostile clients. Its chains have no provider: payments can still be created. */
export interface AloneDaemon {
  readonly pid: number
  readonly port: number
  /** A test key with every permission. */
  readonly key: string
  readonly installation: Installation
}

export const startAlone = Effect.fn("test.startAlone")(function* (
  over: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {}
) {
  const folder = yield* temporaryFolder
  const database = join(folder, "tilld.db")
  const config = join(folder, "tilld.toml")
  const chain = (id: number) => ({
    rpc_urls: ["http://127.0.0.1:1"],
    chain_id: id,
    confirmations: 3,
    poll_interval: "10 seconds",
    tokens: { USDC: { address: `0x${"11".repeat(20)}`, decimals: 6 } }
  })
  const settings = {
    server: { port: 0, public_url: "http://127.0.0.1:8080" },
    database: { path: database },
    limits: { per_minute: 1_000_000, per_hour: 100_000_000 },
    wallets: { test: xpub },
    rates: { sources: ["fixed"], fixed: { ETH: "2500", USDC: "1", EUR: "1.10" } },
    log: { level: "error" },
    chains: { base: { test: chain(31_337) }, polygon: { test: chain(31_338) } },
    ...over
  }
  writeFileSync(config, stringify(settings))
  const env = { TILLD_MASTER_KEY: randomBytes(32).toString("base64"), XDG_CACHE_HOME: yield* temporaryFolder }
  const installation: Installation = { folder, config, database, env }
  const { pid, said } = yield* startDaemon(installation, { TILLD_LOG__LEVEL: "info" })
  const daemon: AloneDaemon = { pid, port: said, key: yield* createKey(installation), installation }
  return daemon
})

/** Sockets that a process has open; undefined where there is no /proc. */
export const openSocketsOf = (pid: number): number | undefined => {
  const folder = `/proc/${pid}/fd`
  if (!existsSync(folder)) return undefined
  // One that was closed meanwhile is none.
  const isSocket = (file: string) => statSync(`${folder}/${file}`, { throwIfNoEntry: false })?.isSocket() === true
  return readdirSync(folder).filter(isSocket).length
}
