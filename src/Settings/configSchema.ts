/**
 * The keys of the configuration: what each may be, its default and its meaning. `SettingsShape`, which the rest of
 * tilld reads, is the type of this schema, but for the chains: their sections become a list.
 */
import { type Effect, Schema } from "effect"
import { highestQuota, leastQuota } from "../Domain/Account.ts"
import { highestLimits } from "../Domain/ApiKey.ts"
import type { Network } from "../Domain/Chain.ts"
import { type Erc20, Fiat } from "../Domain/Currency.ts"
import { QuoteCurrency } from "../Domain/Quote.ts"
import type { ConfiguredValues } from "./configuredValues.ts"
import type { KnownBlock } from "./knownBlocks.ts"
import type { SettingsInvalid } from "./SettingsProblem.ts"
import {
  anyText,
  cidr,
  contractAddress,
  databasePath,
  decimal,
  destinationAddress,
  duration,
  flag,
  identifier,
  integer,
  listOf,
  nodeName,
  nodeUrls,
  nonEmpty,
  oneOf,
  optionalKey,
  optionalUrl,
  orUndefined,
  positiveDecimalText,
  postgresUrl,
  publicUrl,
  section,
  sourceUrl,
  startBlock,
  walletKey,
  withDefault,
  withDefaults
} from "./valueSchemas.ts"

export const defaultDatabase = "/var/lib/tilld/tilld.db"
export const defaultNodeFolder = "/var/lib/tilld"

const cidrs = withDefault(listOf("CIDR blocks", cidr), [])

/** 0 takes any free port. */
const port = integer(0, 65_535, " (0 takes any free port)")

/** False: nothing new is offered in it, and what is there is watched to its end. */
const accepting = withDefault(flag, true)

const token = section({
  /** Lower case. */
  address: contractAddress,
  decimals: integer(0, 36),
  accepting
})

const chain = section({
  /** Secret: providers put their keys into the URL. */
  rpcUrls: nodeUrls,
  chainId: integer(1, Number.MAX_SAFE_INTEGER),
  /** Confirmations, counting the block of the transaction: 1 is "in a block". */
  confirmations: integer(1, 10_000),
  /** The interval while money is expected on the chain soon. */
  pollInterval: duration("100 millis", "1 hour"),
  balanceInterval: withDefault(duration("1 second", "1 hour"), "15 seconds"),
  startBlock: withDefault(startBlock, "latest"),
  accepting,
  tokens: withDefaults({
    USDC: optionalKey(token),
    USDT: optionalKey(token),
    DAI: optionalKey(token),
    WBTC: optionalKey(token)
  }),
  policy: withDefault(
    listOf("sections", section({ aboveUsd: positiveDecimalText, require: oneOf("safe", "finalized") })),
    []
  )
})

const network = optionalKey(section({ live: optionalKey(chain), test: optionalKey(chain) }))

const fixedPrices = Schema.Record({ key: QuoteCurrency, value: positiveDecimalText }).pipe(
  Schema.omit("USD"),
  Schema.partialWith({ exact: true })
)

/** The schema of the configuration file, after the presets of its chains are filled in. */
export const File = section({
  server: section({
    host: withDefault(nonEmpty, "127.0.0.1"),
    port: withDefault(port, 8080),
    publicUrl,
    trustedProxies: cidrs
  }),
  /** Off unless its section is present. */
  admin: orUndefined(
    section({
      host: withDefault(nonEmpty, "127.0.0.1"),
      port: withDefault(port, 9090),
      /** Allowed host names, in addition to its host, IP addresses and localhost. */
      names: withDefault(listOf("host names", nonEmpty), [])
    })
  ),
  database: withDefaults({
    engine: withDefault(oneOf("sqlite", "postgres"), "sqlite"),
    /** Absolute in the settings. With PostgreSQL the place of what lies beside a database: sockets, lock, master key. */
    path: withDefault(databasePath, defaultDatabase),
    /** Holds the mark by which a restored copy of the database is recognised. In the settings absolute and never "". */
    markFolder: withDefault(anyText, ""),
    url: withDefault(postgresUrl, ""),
    passwordFile: withDefault(anyText, ""),
    rootCertificate: withDefault(anyText, ""),
    schema: withDefault(identifier, "tilld"),
    /** Connections that read. */
    pool: withDefault(integer(1, 64), 4)
  }),
  node: withDefaults({
    name: withDefault(nodeName, ""),
    /** Of its own files where the database is none. */
    folder: withDefault(nonEmpty, defaultNodeFolder)
  }),
  control: withDefaults({
    /** The read-only control socket, outside the database's folder; "" for none. Absolute in the settings. */
    readSocket: withDefault(anyText, "")
  }),
  limits: withDefaults({
    perMinute: withDefault(integer(1, highestLimits.perMinute), 100),
    perHour: withDefault(integer(1, highestLimits.perHour), 1000)
  }),
  /** Account-level extended public keys. */
  wallets: withDefaults({ live: orUndefined(walletKey), test: orUndefined(walletKey) }),
  payments: withDefaults({
    settleGrace: withDefault(duration("0 seconds", "1 day"), "60 seconds"),
    lateWindow: withDefault(duration("1 hour", "3650 days"), "30 days"),
    // 10000 would make an unpaid payment count as paid. More than half is certainly a mistake.
    /** Accepted underpayment in basis points (1/100 %). */
    toleranceBps: withDefault(integer(0, 5_000, " (100 are 1 %)"), 0),
    /** How long to wait for the other providers of a chain while only one responds. */
    soleProviderPatience: withDefault(duration("0 seconds", "3650 days"), "10 minutes"),
    /** How far a head may be ahead of this machine's clock. Beyond, the head is refused, or the clock is wrong. */
    clockTolerance: withDefault(duration("1 minute", "3650 days"), "15 minutes"),
    /** After this many addresses in a row without a history the rest of a wallet is assumed unused (gap limit). */
    lookAhead: withDefault(integer(20, 10_000), 200),
    /** USD: a transfer that is worth less, and less than 1 % of the payment, is not credited; "0": none is too small. */
    dustFloorUsd: withDefault(decimal, "0.10")
  }),
  accounts: withDefaults({
    /** Quota of an account in bytes: of all but `default`, and those with their own by `tilld accounts change`. */
    quotaBytes: withDefault(integer(leastQuota, highestQuota), 1_000_000_000),
    /** Requests of all keys of an account together, in each mode; unless given, ten times those of one key. */
    perMinute: orUndefined(integer(1, highestLimits.perMinute)),
    perHour: orUndefined(integer(1, highestLimits.perHour))
  }),
  webhooks: withDefaults({
    allowTargets: cidrs,
    /** Nothing is sent to these, even if `allowTargets` has them. */
    denyTargets: cidrs,
    /** PEM file, "" for none. Absolute in the settings. */
    extraCaFile: withDefault(anyText, ""),
    concurrency: withDefault(integer(1, 1_024), 64),
    concurrencyPerEndpoint: withDefault(integer(1, 1_024), 8)
  }),
  rates: withDefaults({
    sources: withDefault(listOf("sources", oneOf("chainlink", "coinbase", "kraken", "fixed")), [
      "chainlink",
      "coinbase",
      "kraken"
    ]),
    /** Fiat currencies that are on; in the settings with those that always are. */
    currencies: withDefault(listOf("currencies", oneOf(...Fiat.literals)), []),
    /** Price of one unit in USD, by symbol. */
    fixed: withDefault(fixedPrices, {}),
    coinbaseUrl: withDefault(sourceUrl, "https://api.coinbase.com"),
    krakenUrl: withDefault(sourceUrl, "https://api.kraken.com")
  }),
  quotes: withDefaults({
    /** The operator's share of a quote's gross amount, in basis points (1/100 %). */
    serviceFeeBps: withDefault(integer(0, 5_000, " (100 are 1 %)"), 50)
  }),
  checkout: withDefaults({
    /** The images that accounts may name as their logo. Absolute in the settings. */
    logoFolder: withDefault(nonEmpty, "logos")
  }),
  portal: withDefaults({ enabled: withDefault(flag, true), allow: cidrs }),
  log: withDefaults({
    level: withDefault(oneOf("trace", "debug", "info", "warning", "error"), "info"),
    format: withDefault(oneOf("json", "pretty"), "json")
  }),
  telemetry: withDefaults({ otlpEndpoint: withDefault(optionalUrl, "") }),
  retention: withDefaults({
    requests: withDefault(duration("1 day", "3650 days"), "30 days"),
    deliveries: withDefault(duration("1 day", "3650 days"), "90 days")
  }),
  alerts: withDefaults({ url: withDefault(optionalUrl, "") }),
  /** Addresses that collected money may go to; empty: any. */
  sweep: withDefaults({
    allow: withDefault(listOf("addresses", destinationAddress), []),
    /** An alert says when more than this waits to be collected; 0: none does. */
    remindUsd: withDefault(decimal, "0")
  }),
  chains: withDefaults({ ethereum: network, polygon: network, arbitrum: network, optimism: network, base: network })
})
export type File = typeof File.Type

/** A token contract whose transfers are credited. */
export interface TokenSettings extends Omit<Schema.Schema.Type<typeof token>, "accepting"> {
  readonly symbol: Erc20
  readonly accepting?: boolean
}

type ChainSection = typeof chain.Type

export interface ChainSettings extends Network, Omit<ChainSection, "tokens" | "policy"> {
  readonly tokens: ReadonlyArray<TokenSettings>
  /** Contracts that payers mistake for an accepted token, such as the bridged USDC.e; addresses in lower case. */
  readonly wrongTokens: ReadonlyArray<{ readonly name: string; readonly address: string }>
  readonly policies: ChainSection["policy"]
  /** Blocks that identify the public network; empty for any other network. */
  readonly knownBlocks: ReadonlyArray<KnownBlock>
}

/** The configuration, decoded and checked. */
export interface SettingsShape extends Omit<File, "chains" | "database"> {
  /** Both absolute, and `markFolder` never "". With PostgreSQL `path` is where what lies beside a database is. */
  readonly database: Pick<File["database"], "path" | "markFolder">
  /** Undefined where the database is a file. */
  readonly postgres: Omit<File["database"], "engine" | "path" | "markFolder"> | undefined
  /** One entry per configured chain and mode. */
  readonly chains: ReadonlyArray<ChainSettings>
  /** What it is, to be compared with another one. */
  readonly values: ConfiguredValues
  /** Loads it again, from the file as it is then. */
  readonly again: Effect.Effect<SettingsShape, SettingsInvalid>
}
