import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Duration, Effect, Either, Redacted } from "effect"
import { makeClient, type RpcClient, RpcError, type RpcRequest } from "../src/Chains/Rpc.ts"
import { type ChainName, chainNames } from "../src/Domain/Chain.ts"
import type { PaymentCurrency } from "../src/Domain/Currency.ts"
import { presets } from "../src/Settings/presets.ts"
import type { ChainSettings } from "../src/Settings.ts"
import { migrateFile } from "../src/Sql/migrate.ts"
import { testSettings } from "../test/lib/settings.ts"
import { Life, merchant } from "../test/sim/Life.ts"
import { answer, Refusal } from "../test/sim/node.ts"
import { SimChain } from "../test/sim/SimChain.ts"
import { transaction, transferLog } from "../test/sim/transactions.ts"
import { count, type Figure } from "./Figure.ts"

// What a day of watching asks of the providers: the real watchers over five model chains with the public networks' pace,
// confirmations and polling, on virtual time, every call and byte counted. What the payments of others add to an answer
// is put in by size, from what blocks of the public networks held in 2025.

const second = 1_000
const hour = 3_600 * second
const day = 24 * hour
const epoch = 1_700_000_000_000

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

interface Traffic {
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

const clientOf = (name: ChainName, chain: SimChain, traffic: Traffic, now: () => number): RpcClient =>
  makeClient({
    host: name,
    counters: traffic,
    sendEach: (calls) =>
      Effect.sync(() => {
        chain.mineUntil(now())
        traffic.batches++
        traffic.calls += calls.length
        traffic.sent += JSON.stringify(calls).length
        return calls.map((call) => {
          try {
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
            const result = answer(view, call)
            traffic.received += JSON.stringify(result).length + elsewhere(networks[name], call, now())
            return Either.right(result)
          } catch (cause) {
            if (!(cause instanceof Refusal)) throw cause
            return Either.left(
              new RpcError({ host: name, method: call.method, reason: "unsupported", detail: cause.message })
            )
          }
        })
      })
  })

const settingsOf = (name: ChainName): ChainSettings => {
  const { chainId, confirmations, pollInterval, tokens, wrongTokens } = presets.live[name]
  return {
    chain: name,
    mode: "test",
    rpcUrls: [Redacted.make(name)],
    chainId,
    confirmations,
    pollInterval: Duration.decode(pollInterval as Duration.DurationInput),
    balanceInterval: Duration.seconds(15),
    startBlock: "latest",
    tokens: Object.entries(tokens).map(([symbol, address]) => ({
      symbol: symbol as "USDC",
      address: address.toLowerCase(),
      decimals: 6
    })),
    wrongTokens: Object.entries(wrongTokens).map(([wrong, address]) => ({
      name: wrong,
      address: address.toLowerCase()
    })),
    policies: []
  }
}

/** A day with `perDay` payments, spread over it and over the chains; half in coin, nine of ten paid after three minutes. */
const aDay = async (perDay: number): Promise<ReadonlyMap<ChainName, Traffic>> => {
  const folder = mkdtempSync(join(tmpdir(), "tilld-cost-"))
  const path = join(folder, "tilld.db")
  await Effect.runPromise(migrateFile(path))
  const database = new Database(path)
  database.pragma("journal_mode = WAL")
  database.exec("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Shop', 0)")
  const traffic = new Map(chainNames.map((name) => [name, { calls: 0, batches: 0, sent: 0, received: 0 }]))
  const chains = new Map(
    chainNames.map((name) => {
      const { finalized, interval } = networks[name]
      return [name, new SimChain({ name, interval, safe: finalized, finalized }, 5_000, epoch)] as const
    })
  )
  const chainOf = (name: ChainName): SimChain => chains.get(name) ?? Effect.runSync(Effect.dieMessage(name))
  const base = testSettings(path)
  const life: Life = new Life(
    {
      settings: { ...base, chains: chainNames.map(settingsOf) },
      clientOf: (url) => {
        const name = url as ChainName
        const counted = traffic.get(name) ?? { calls: 0, batches: 0, sent: 0, received: 0 }
        return clientOf(name, chainOf(name), counted, () => life.time.now)
      },
      deliver: () => Effect.succeed({ status: 200 }),
      beforeCommit: () => false,
      afterCommit: () => false
    },
    path,
    "a day",
    epoch
  )
  try {
    await life.start()
    const paying: Array<{ readonly at: number; readonly pay: () => void }> = []
    const passTo = async (until: number) => {
      while (paying[0] !== undefined && paying[0].at <= until) {
        const next = paying.shift()
        await life.time.passTo(next?.at ?? until)
        next?.pay()
      }
      await life.time.passTo(until)
    }
    for (let i = 0; i < perDay; i++) {
      await passTo(epoch + Math.floor(((i + 0.5) * day) / perDay))
      const chain = chainNames[i % chainNames.length] ?? "base"
      const currency: PaymentCurrency = i % 2 === 0 && chain !== "polygon" ? "ETH" : "USDC"
      const payment = await life.create(
        {
          merchantRef: `order-${i}`,
          amount: 1_000_000n,
          currency,
          chain,
          expiresIn: 3_600,
          metadata: "{}"
        },
        merchant
      )
      if (payment === undefined || i % 10 === 9) continue
      const to = payment.address.toLowerCase()
      const contract = presets.live[chain].tokens.USDC?.toLowerCase() ?? ""
      const what =
        currency === "ETH" ? { to, value: 1_000_000n } : { to: contract, logs: [transferLog(contract, to, 1_000_000n)] }
      paying.push({
        at: life.time.now + 3 * 60 * second,
        pay: () => chainOf(chain).submit(transaction(`payment ${i}`, what))
      })
    }
    await passTo(epoch + day)
    await life.time.passTo(epoch + day)
    const open = database.prepare("SELECT count(*) FROM payments WHERE status = 'confirmed'").pluck().get() as number
    // The last ones are still on their way.
    if (open < perDay * 0.85 - 20) throw new Error(`only ${open} of ${perDay} payments are confirmed`)
  } finally {
    await life.bury()
    database.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return traffic
}

const mega = (bytes: number): string => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)

const figures = (perDay: number, traffic: ReadonlyMap<ChainName, Traffic>): ReadonlyArray<Figure> => {
  const all = [...traffic.values()]
  const calls = all.reduce((sum, one) => sum + one.calls, 0)
  return [
    ...Array.from(traffic, ([name, one]): Figure => {
      const ticks = day / Duration.toMillis(Duration.decode(presets.live[name].pollInterval as Duration.DurationInput))
      return {
        what: `${count(perDay)} payments, ${name}`,
        measured: `${count(one.batches)} requests, ${mega(one.sent)} MB sent, ${mega(one.received)} MB received`,
        judged: one.calls,
        floor: { atMost: 5.5 * ticks },
        written: (value) => `${count(Math.round(value))} calls a day`
      }
    }),
    {
      what: `${count(perDay)} payments, five chains`,
      measured: "a free plan of 3,000,000 requests a month has 100,000 a day",
      judged: calls,
      ...(perDay > 20 ? {} : { floor: { atMost: 100_000 } }),
      written: (value) => `${count(Math.round(value))} calls a day`
    }
  ]
}

/** Calls and bytes of a day, with few payments and with many. */
export const cost = Effect.promise(async () => [...figures(20, await aDay(20)), ...figures(10_000, await aDay(10_000))])
