import { randomBytes } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { stringify } from "smol-toml"
import type { ChainName } from "../../src/Domain/Chain.ts"
import { startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { administer, login, postgresServer, urlOf } from "../lib/postgres.ts"
import { root, runTilld, start } from "./processes.ts"

/** Account 1' of the phrase that every development tool publishes. */
export const xpub =
  "xpub6Ce9NcJvTk372KjsGfWqbcex5DumjpNquQLApoeQUavSCjEc823BV1tb4rXUuPuht8h2hSxkg2EXUaKUJmniJvRZAELxypsCzBFdtosmV76"

/** Milliseconds between two looks at the chain. */
export const pollInterval = 500

export type Engine = "sqlite" | "postgres"

/** The keys of a daemon whose data is in a PostgreSQL of its own, which syncs as one of a shop does. */
const onPostgres = (folder: string) =>
  Effect.gen(function* () {
    const port = yield* postgresServer(true)
    yield* administer(port, "postgres", "CREATE DATABASE tilld")
    writeFileSync(join(folder, "password"), login.password, { mode: 0o600 })
    return {
      database: { engine: "postgres", url: urlOf(port, "tilld"), password_file: "password" },
      node: { name: "bench", folder }
    }
  })

/** A configuration with a place of its own for its database. */
export interface Installation {
  readonly folder: string
  readonly config: string
  readonly database: string
  readonly env: Readonly<Record<string, string>>
}

export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "tilld-bench-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A local chain without a clock: a block comes when it is asked for. */
export const localChain = startLocalChain({ chain: "base", chainId: 31_337, tokens: ["USDC"] })

/** Writes a configuration that watches a local chain under a name; gone with the scope. */
export const install = Effect.fn("bench.install")(function* (
  chain: Effect.Effect.Success<typeof localChain>,
  webhooks: Readonly<Record<string, unknown>> = {},
  name: ChainName = "base",
  engine: Engine = "sqlite"
) {
  const folder = yield* temporaryFolder
  const database = join(folder, "tilld.db")
  const config = join(folder, "tilld.toml")
  const settings = {
    server: { port: 0, public_url: "http://127.0.0.1:8080" },
    ...(engine === "sqlite" ? { database: { path: database } } : yield* onPostgres(folder)),
    limits: { per_minute: 1_000_000, per_hour: 100_000_000 },
    wallets: { test: xpub },
    webhooks: { allow_targets: ["127.0.0.1/32"], ...webhooks },
    rates: { sources: ["fixed"], fixed: { ETH: "2500" } },
    chains: {
      [name]: {
        test: {
          rpc_urls: [chain.url],
          chain_id: chain.chainId,
          confirmations: 3,
          poll_interval: `${pollInterval} millis`,
          tokens: { USDC: chain.tokens.USDC }
        }
      }
    }
  }
  writeFileSync(config, stringify(settings))
  const installation: Installation = {
    folder,
    config,
    database,
    env: { TILLD_MASTER_KEY: randomBytes(32).toString("base64"), XDG_CACHE_HOME: yield* temporaryFolder }
  }
  return installation
})

const portOf = (line: string): number | undefined =>
  line.includes('"listening"') ? Number(/"port":(\d+)/.exec(line)?.[1]) : undefined

const starter = readFileSync(join(root, "scripts/release/tilld"), "utf8")
/** The options of Node that an installed daemon runs with, and its environment. */
const nodeOptions = starter.match(/--(max|no)-[\w-]+(=\d+)?/g) ?? []
const ofStarter = Object.fromEntries(
  Array.from(starter.matchAll(/(MALLOC_\w+):-(\d+)/g), ([, name, value]) => [name, value])
)

/** The daemon until the scope closes; `said` is the port that it listens on. */
export const startDaemon = (
  { config, env }: Installation,
  more: Readonly<Record<string, string>> = {},
  moreOptions: ReadonlyArray<string> = []
) =>
  start([...nodeOptions, ...moreOptions, "dist/tilld.js", "serve", "--config", config], portOf, {
    ...ofStarter,
    ...env,
    ...more
  })

/** A test key with every permission. */
export const createKey = ({ config, env }: Installation) =>
  Effect.map(
    runTilld<{ key: string }>(["keys", "create", "--config", config, "--mode", "test", "--name", "bench"], env),
    ({ key }) => key
  )
