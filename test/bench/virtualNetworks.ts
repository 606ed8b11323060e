import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Duration, Effect, Redacted } from "effect"
import { makeClient, type RpcClient, type RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { type ChainName, chainNames, chainTraits } from "../../src/Domain/Chain.ts"
import { presets } from "../../src/Settings/publicNetworks.ts"
import type { ChainSettings } from "../../src/Settings.ts"
import { migrateFile } from "../../src/Sql/migrate.ts"
import { testSettings } from "../lib/settings.ts"
import { Life } from "../sim/Life.ts"
import { answer } from "../sim/node.ts"
import { replies } from "../sim/nodeClient.ts"
import { SimChain } from "../sim/SimChain.ts"
import { openFile } from "../sim/Store.ts"

// The real watchers over five model chains with the public networks' pace, confirmations and polling, on virtual time,
// every call and byte counted. What the payments of others add to an answer is put in by size, from what blocks of the
// public networks held in 2025.

/** When it begins, Unix milliseconds. */
export const epoch = 1_700_000_000_000

interface Network {
  /** Milliseconds from block to block. */
  readonly interval: number
  /** Transactions of others in a block, and token transfers of the contracts that are read. */
  readonly transactions: number
  readonly transfers: number
  /** Blocks by which the finalized tag is behind. */
  readonly finalized: number
}

const networks: Readonly<Record<ChainName, Network>> = {
  ethereum: { interval: 12_000, transactions: 190, transfers: 70, finalized: 75 },
  polygon: { interval: 2_000, transactions: 90, transfers: 30, finalized: 5 },
  arbitrum: { interval: 250, transactions: 6, transfers: 2, finalized: 4_000 },
  optimism: { interval: 2_000, transactions: 30, transfers: 4, finalized: 600 },
  base: { interval: 2_000, transactions: 180, transfers: 40, finalized: 600 }
}
/** Bytes of JSON: a transaction's hash in a header, a transaction in a full block, a log. */
const size = { hash: 69, transaction: 700, log: 640 }

/** What was asked of a provider. */
export interface Traffic {
  /** Calls by their method. */
  readonly methods: Map<string, number>
  calls: number
  batches: number
  sent: number
  received: number
}

/** What the rest of the world adds to an answer. */
const elsewhere = ({ interval, transactions, transfers }: Network, { method, params }: RpcRequest, now: number) => {
  if (method === "eth_getBlockByNumber" || method === "eth_getBlockByHash") {
    return transactions * (params[1] === true ? size.transaction : size.hash)
  }
  const filter = params[0] as { readonly topics?: ReadonlyArray<unknown>; fromBlock?: string; toBlock?: string }
  if (method !== "eth_getLogs" || (filter.topics?.length ?? 0) > 1) return 0
  const blocks = Math.min(Number(filter.toBlock) - Number(filter.fromBlock) + 1, Math.ceil(now / interval))
  return Math.max(0, blocks) * transfers * size.log
}

/** What was asked of a chain's two providers: of the one that serves, and of the other, which corroborates. */
export interface ChainTraffic {
  readonly serving: Traffic
  readonly other: Traffic
}

const clientOf = (host: string, name: ChainName, chain: SimChain, traffic: Traffic, now: () => number): RpcClient =>
  makeClient({
    host,
    counters: traffic,
    sendEach: (calls) =>
      Effect.suspend(() => {
        chain.mineUntil(now())
        traffic.batches++
        traffic.calls += calls.length
        for (const { method } of calls) traffic.methods.set(method, (traffic.methods.get(method) ?? 0) + 1)
        traffic.sent += JSON.stringify(calls).length
        const view = {
          chain,
          chainId: presets.live[name].chainId,
          head: chain.head,
          overrides: true,
          traces: false,
          tags: true,
          layer2: name === "optimism" || name === "base",
          stateDepth: 128
        }
        return replies(host, calls, (call) => {
          const result = answer(view, call)
          traffic.received += JSON.stringify(result).length + elsewhere(networks[name], call, now())
          return result
        })
      })
  })

/** What the address of a chain's second provider has after the chain's name. */
const second = ".second"

const settingsOf = (name: ChainName): ChainSettings => {
  const { chainId, tokens, wrongTokens } = presets.live[name]
  const { confirmations, pollInterval } = chainTraits[name]
  return {
    chain: name,
    mode: "test",
    rpcUrls: [Redacted.make(name), Redacted.make(`${name}${second}`)],
    chainId,
    confirmations,
    pollInterval: Duration.decode(pollInterval as Duration.DurationInput),
    balanceInterval: Duration.seconds(15),
    startBlock: "latest",
    accepting: true,
    tokens: Object.entries(tokens).map(([symbol, address]) => ({
      symbol: symbol as "USDC",
      address: address.toLowerCase(),
      decimals: 6
    })),
    wrongTokens: Object.entries(wrongTokens).map(([wrong, address]) => ({
      name: wrong,
      address: address.toLowerCase()
    })),
    policies: [],
    knownBlocks: []
  }
}

/** Five chains and a daemon that watches them. */
export interface VirtualNetworks {
  readonly life: Life
  readonly database: Database.Database
  readonly chainOf: (name: ChainName) => SimChain
  readonly traffic: ReadonlyMap<ChainName, ChainTraffic>
}

/** Has `work` done on an empty database that `prepare` may have filled. */
export const withNetworks = async <A>(
  prepare: (database: Database.Database) => void,
  work: (networks: VirtualNetworks) => Promise<A>
): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "tilld-networks-"))
  const path = join(folder, "tilld.db")
  await Effect.runPromise(migrateFile(path))
  const database = new Database(path)
  database.pragma("journal_mode = WAL")
  database.exec("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Shop', 0)")
  prepare(database)
  const none = (): Traffic => ({ methods: new Map(), calls: 0, batches: 0, sent: 0, received: 0 })
  const traffic = new Map(chainNames.map((name) => [name, { serving: none(), other: none() }]))
  const chains = new Map(
    chainNames.map((name) => {
      const { finalized, interval } = networks[name]
      return [name, new SimChain({ name, interval, safe: finalized, finalized }, 5_000, epoch)] as const
    })
  )
  const chainOf = (name: ChainName): SimChain => chains.get(name) ?? Effect.runSync(Effect.dieMessage(name))
  const store = openFile(path)
  const life: Life = new Life(
    {
      settings: { ...testSettings(path), chains: chainNames.map(settingsOf) },
      store,
      clientOf: (url) => {
        const name = chainNames.find((one) => url.startsWith(one)) ?? "base"
        const asked = traffic.get(name)
        const one = (url === name ? asked?.serving : asked?.other) ?? none()
        return clientOf(url, name, chainOf(name), one, () => life.time.now)
      },
      deliver: () => Effect.succeed({ status: 200 }),
      beforeCommit: () => false,
      afterCommit: () => false
    },
    "virtual networks",
    epoch
  )
  try {
    await life.start()
    return await work({ life, database, chainOf, traffic })
  } finally {
    await life.bury()
    store.close()
    database.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
