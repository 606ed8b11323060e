import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Context, Effect, Layer } from "effect"
import { request } from "undici"
import { type Address, toHex } from "viem"
import { HDKey, privateKeyToAddress } from "viem/accounts"
import { createKey } from "../../src/Auth/keyOperations.ts"
import { Invocation } from "../../src/Control/Invocation.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import { type ChainName, chainNames, type Mode } from "../../src/Domain/Chain.ts"
import { Erc20, tokensOn } from "../../src/Domain/Currency.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { type LocalChain, startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { httpAgent } from "./loopback.ts"
import { type Running, startDaemonHere, startTilld } from "./processes.ts"
import { temporaryFolder } from "./store.ts"

/** Of every chain of these suites. */
export const confirmations = 3

export type Chains = ReadonlyMap<ChainName, LocalChain>

/** A local chain of the test. It mines on request. */
export const localChain = (chain: ChainName) =>
  startLocalChain({
    chain,
    chainId: 31_337 + chainNames.indexOf(chain),
    tokens: Erc20.literals.filter((symbol) => tokensOn(chain).includes(symbol))
  })

/** All five, for suites that turn no clock and replace no block. */
export class FiveChains extends Context.Tag("test/FiveChains")<FiveChains, Chains>() {
  static readonly layer = Layer.scoped(
    FiveChains,
    Effect.map(
      Effect.forEach(chainNames, (name) => Effect.map(localChain(name), (chain) => [name, chain] as const), {
        concurrency: "unbounded"
      }),
      (chains) => new Map(chains)
    )
  )
}

/** Where a daemon lives: a folder with its configuration and its master key, and a wallet that no other test has. */
export interface Home {
  readonly folder: string
  readonly config: string
  readonly database: string
  /** The wallet's receiving address of an index, by way of its private key and another library than the daemon's. */
  readonly address: (index: number) => Address
  /** What the wallet is made of, that of test mode unless the mode is given; a new copy each time. Its account is 0. */
  readonly seed: (mode?: Mode) => Uint8Array
}

export interface HomeOptions {
  readonly chains: Chains
  /** Where each chain is asked, in place of the chain itself. */
  readonly rpcUrls?: ReadonlyMap<ChainName, ReadonlyArray<string>>
  /** The authority of the receivers that the daemon is to trust. */
  readonly caFile?: string
  /** Absent: any free port. */
  readonly port?: number
  /** Prices in USD in addition to those of ETH and USDC. */
  readonly prices?: Readonly<Record<string, string>>
  /** The keys of a database that is no file of the home. */
  readonly store?: string
  /** The chains that are watched in live mode too, with a wallet of its own; none unless given. */
  readonly liveChains?: Chains
}

const newWallet = () => {
  const seed = randomBytes(64)
  const account = HDKey.fromMasterSeed(seed).derive("m/44'/60'/0'")
  const address = (index: number) => {
    const { privateKey } = account.derive(`m/0/${index}`)
    if (privateKey === null) throw new Error("the test's wallet has no private key")
    return privateKeyToAddress(toHex(privateKey))
  }
  return { xpub: account.publicExtendedKey, address, seed: () => Uint8Array.from(seed) }
}

const chainSection = (
  { rpcUrls }: HomeOptions,
  mode: Mode,
  [name, { chainId, tokens, url }]: readonly [ChainName, LocalChain]
) => `
[chains.${name}.${mode}]
rpc_urls = ${JSON.stringify(rpcUrls?.get(name) ?? [url])}
chain_id = ${chainId}
confirmations = ${confirmations}
poll_interval = "100 millis"
balance_interval = "1 second"
[chains.${name}.${mode}.tokens]
${Object.entries(tokens)
  .map(([symbol, { address, decimals }]) => `${symbol} = { address = "${address}", decimals = ${decimals} }`)
  .join("\n")}
`

const prices = (options: HomeOptions) =>
  Object.entries({ ETH: "2500", USDC: "1", ...options.prices })
    .map(([symbol, price]) => `${symbol} = "${price}"`)
    .join(", ")

const configuration = (options: HomeOptions, database: string, xpubs: Readonly<Record<Mode, string>>) => `
[server]
port = ${options.port ?? 0}
public_url = "http://127.0.0.1"
${options.store ?? `[database]\npath = "${database}"`}
[limits]
per_minute = 1000000
per_hour = 1000000
[wallets]
test = "${xpubs.test}"
${options.liveChains === undefined ? "" : `live = "${xpubs.live}"`}
[payments]
settle_grace = "0 seconds"
clock_tolerance = "1 day"
[webhooks]
allow_targets = ["127.0.0.1/32"]
extra_ca_file = "${options.caFile ?? ""}"
[rates]
sources = ["fixed"]
fixed = { ${prices(options)} }
[log]
level = "debug"
${[...options.chains].map((chain) => chainSection(options, "test", chain)).join("")}
${[...(options.liveChains ?? [])].map((chain) => chainSection(options, "live", chain)).join("")}`

/** Furnishes a folder of its own. */
export const makeHome = (options: HomeOptions) =>
  Effect.map(temporaryFolder, (folder): Home => {
    const database = join(folder, "tilld.db")
    const config = join(folder, "tilld.toml")
    const wallets = { test: newWallet(), live: newWallet() }
    writeFileSync(config, configuration(options, database, { test: wallets.test.xpub, live: wallets.live.xpub }))
    writeFileSync(join(folder, "master.key"), randomBytes(32).toString("base64"), { mode: 0o600 })
    const { address } = wallets.test
    return { folder, config, database, address, seed: (mode = "test") => wallets[mode].seed() }
  })

/** A chain of its own, and a home on it. */
export const homeOn = (name: ChainName, options: Omit<HomeOptions, "chains"> = {}) =>
  Effect.flatMap(localChain(name), (chain) =>
    Effect.map(makeHome({ ...options, chains: new Map([[name, chain]]) }), (home) => ({ chain, home }))
  )

/** Rows of the database, read by another connection than the daemon's. One in this process has its turn first. */
export const rows = <Row>(home: Home, sql: string, ...params: ReadonlyArray<string>) =>
  Effect.zipRight(
    eventLoopTurn,
    Effect.acquireUseRelease(
      Effect.sync(() => new Database(home.database, { readonly: true })),
      (database) => Effect.sync(() => database.prepare(sql).all(...params) as ReadonlyArray<Row>),
      (database) => Effect.sync(() => database.close())
    )
  )

/** What the store knows of a payment: the statuses that it went to, and the events that were announced, in order. */
export const story = (home: Home, { id }: Pick<PaymentObject, "id">) =>
  Effect.gen(function* () {
    const statuses = yield* rows<{ to_status: string }>(
      home,
      "SELECT to_status FROM transitions WHERE payment_id = ? ORDER BY ordinal",
      id
    )
    const events = yield* rows<{ kind: string }>(
      home,
      "SELECT kind FROM events WHERE payment_id = ? ORDER BY created_at, sequence",
      id
    )
    return { statuses: statuses.map((row) => row.to_status), events: events.map((row) => row.kind) }
  })

export interface Answer<A> {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: A
}

/** What a payment is made of, where it matters to the test. */
export interface Order {
  readonly chain: ChainName
  readonly currency: string
  readonly amount: string
  readonly merchantRef?: string
  readonly expiresIn?: number
  readonly webhookUrl?: string
  readonly metadata?: unknown
}

/** A daemon that accepts requests. */
export interface Daemon extends Running {
  readonly home: Home
  /** Base of its API. */
  readonly url: string
  /** A test key with every permission. */
  readonly key: string
  readonly call: <A>(
    method: "GET" | "POST" | "PATCH" | "DELETE",
    path: string,
    body?: unknown
  ) => Effect.Effect<Answer<A>>
  /** Creates a payment, which must succeed. */
  readonly create: (order: Order) => Effect.Effect<PaymentObject>
  readonly payment: (payment: Pick<PaymentObject, "id">) => Effect.Effect<PaymentObject>
  /** Waits for a line of the log: its message, and annotations that it has at least. */
  readonly logged: (message: string, annotations?: Readonly<Record<string, unknown>>) => Effect.Effect<LogLine>
  /** Waits until everything up to the chain's present head has been read and settled. */
  readonly hasRead: (chain: LocalChain) => Effect.Effect<void>
}

export interface LogLine {
  readonly message: string
  readonly logLevel: string
  readonly annotations: Readonly<Record<string, unknown>>
}

const parseLog = (line: string): LogLine | undefined =>
  line.startsWith("{") ? (JSON.parse(line) as LogLine) : undefined

export const waitForLog = (running: Running, message: string, annotations: Readonly<Record<string, unknown>> = {}) => {
  const fits = (line: string) => {
    const log = parseLog(line)
    return (
      log?.message === message && Object.entries(annotations).every(([name, value]) => log.annotations[name] === value)
    )
  }
  const described = Object.assign(fits, { toString: () => `${message} ${JSON.stringify(annotations)}` })
  return Effect.map(running.line(described), (line) => JSON.parse(line) as LogLine)
}

/** Calls over connections that end with the scope. */
export const makeCall = (url: string, key: string) =>
  Effect.map(
    httpAgent,
    (dispatcher): Daemon["call"] =>
      <A>(method: "GET" | "POST" | "PATCH" | "DELETE", path: string, body?: unknown) =>
        Effect.promise(async (signal) => {
          const response = await request(`${url}${path}`, {
            dispatcher,
            signal,
            method,
            headers: { "x-api-key": key, ...(body === undefined ? {} : { "content-type": "application/json" }) },
            ...(body === undefined ? {} : { body: JSON.stringify(body) })
          })
          return { status: response.statusCode, headers: response.headers, body: (await response.body.json()) as A }
        })
  )

/**
 * A key with every permission. It is asked for as the command line does, through the control socket, but in this
 * process: starting another one takes 0.4 s of computing.
 */
export const newKey = ({ database }: Home, mode: Mode = "test") =>
  ask({ socket: `${database}.sock` }, createKey, { mode, name: "suite" }).pipe(
    Effect.provideService(Invocation, { env: {}, user: "suite" }),
    Effect.map(({ key }) => key),
    Effect.orDie
  )

let orders = 0

/** A daemon that was started: waits for its port. */
export const opened = Effect.fnUntraced(function* (home: Home, running: Running, key?: string) {
  const { annotations } = yield* waitForLog(running, "listening")
  const url = `http://127.0.0.1:${annotations.port}`
  const apiKey = key ?? (yield* newKey(home))
  const call = yield* makeCall(url, apiKey)
  const daemon: Daemon = {
    ...running,
    home,
    url,
    key: apiKey,
    call,
    create: (order) =>
      Effect.suspend(() => {
        const body = { merchantRef: `order ${++orders}`, ...order }
        return Effect.map(call<PaymentObject>("POST", "/v1/payments", body), (answer) => {
          assert.equal(answer.status, 201, JSON.stringify(answer.body))
          return answer.body
        })
      }),
    payment: ({ id }) =>
      Effect.map(call<PaymentObject>("GET", `/v1/payments/${id}`), ({ body, status }) => {
        assert.equal(status, 200, JSON.stringify(body))
        return body
      }),
    logged: (message, annotations) => waitForLog(running, message, annotations),
    hasRead: (chain) =>
      Effect.orDie(
        Effect.flatMap(chain.head, ({ hash, number }) => waitForLog(running, "blocks were read", { number, hash }))
      ).pipe(Effect.asVoid)
  }
  return daemon
})

type Environment = Readonly<Record<string, string>>

/**
 * Starts the daemon of a home as a process, until the scope ends. Its API key is a new one, unless it has one from its
 * life before: `key`. `env` is in addition to the path.
 */
export const serve = (home: Home, key?: string, env: Environment = {}) =>
  Effect.flatMap(startTilld(["serve", "--config", home.config], { env }), (running) => opened(home, running, key))

/** The same in this process, for what `startDaemonHere` can do. */
export const serveHere = (home: Home, key?: string, env: Environment = {}) =>
  Effect.flatMap(startDaemonHere(home.config, env), (running) => opened(home, running, key))

/** Sends the order's money to the payment's address; wrong money too. Returns the transaction's hash. */
export const pay = (
  chain: LocalChain,
  { address, amount, currency }: Pick<PaymentObject, "address" | "amount" | "currency">
) => {
  const to = address as Address
  const token = Erc20.literals.find((symbol) => symbol === currency)
  return token === undefined
    ? chain.payNative({ to, amount: BigInt(amount) })
    : chain.payToken({ symbol: token, to, amount: BigInt(amount) })
}

/** Mines a block of exactly this time, in Unix seconds, and as many `after` it: the chain's clock goes on from there. */
export const mineAt = (chain: LocalChain, timestamp: number, after = 0) =>
  Effect.zipRight(chain.rpc("evm_setNextBlockTimestamp", [toHex(timestamp)]), chain.mine(1 + after))
