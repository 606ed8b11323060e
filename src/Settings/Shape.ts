import type { Duration, Redacted } from "effect"
import type { Network } from "../Domain/Chain.ts"
import type { Erc20 } from "../Domain/Currency.ts"
import type { FinalityPolicy } from "../Domain/Finality.ts"
import type { KnownBlock } from "./knownBlocks.ts"

/** A token contract whose transfers are credited. */
export interface TokenSettings {
  readonly symbol: Erc20
  /** Lower case. */
  readonly address: string
  readonly decimals: number
}

/** A contract that looks like a token tilld takes and is not it, such as the bridged USDC.e. */
export interface WrongToken {
  readonly name: string
  /** Lower case. */
  readonly address: string
}

export interface ChainSettings extends Network {
  /** At least one. Secret: providers put their keys into the URL. */
  readonly rpcUrls: ReadonlyArray<Redacted.Redacted<string>>
  readonly chainId: number
  /** Blocks, the one with the transaction included: 1 is "in a block". */
  readonly confirmations: number
  /** While a payment of the mode is open. */
  readonly pollInterval: Duration.Duration
  readonly balanceInterval: Duration.Duration
  readonly startBlock: "latest" | number
  readonly tokens: ReadonlyArray<TokenSettings>
  readonly wrongTokens: ReadonlyArray<WrongToken>
  readonly policies: ReadonlyArray<FinalityPolicy>
  /** What the public network is known by; none for any other. */
  readonly knownBlocks: ReadonlyArray<KnownBlock>
}

export type RateSource = "chainlink" | "coinbase" | "kraken" | "coingecko" | "fixed"
export type LogLevel = "trace" | "debug" | "info" | "warning" | "error"

/** The configuration, decoded and checked. */
export interface SettingsShape {
  readonly server: {
    readonly host: string
    /** 0 takes any free port. */
    readonly port: number
    readonly publicUrl: string
    /** CIDRs. */
    readonly trustedProxies: ReadonlyArray<string>
  }
  readonly admin: { readonly host: string; readonly port: number } | undefined
  readonly database: {
    /** Absolute. */
    readonly path: string
    /** Absolute, outside the database's folder: where the mark is kept that tells a restored copy of the database. */
    readonly markFolder: string
  }
  readonly control: {
    /** Absolute path of the socket that only reads, outside the database's folder; "" for none. */
    readonly readSocket: string
  }
  readonly limits: { readonly perMinute: number; readonly perHour: number }
  /** Account-level extended public keys. */
  readonly wallets: {
    readonly live: Redacted.Redacted<string> | undefined
    readonly test: Redacted.Redacted<string> | undefined
  }
  readonly payments: {
    readonly settleGrace: Duration.Duration
    readonly lateWindow: Duration.Duration
    /** Accepted underpayment in 1/100 %. */
    readonly toleranceBps: number
    /** Where several providers are configured and only one answers: how long the others are waited for. */
    readonly soleProviderPatience: Duration.Duration
    /** A head that is further ahead of this machine's clock is refused, or shows that the clock is wrong. */
    readonly clockTolerance: Duration.Duration
    /** So many addresses in a row without a history, and the rest of a wallet is taken for unused. */
    readonly lookAhead: number
    /** Transfers of a payment's currency worth less than this are settled as a sum; a decimal, "0" for no such floor. */
    readonly dustFloorUsd: string
  }
  readonly accounts: {
    /** What one account may store. */
    readonly quotaBytes: number
  }
  readonly webhooks: {
    /** CIDRs. */
    readonly allowTargets: ReadonlyArray<string>
    /** CIDR blocks that nothing is sent to, whatever else allows them. */
    readonly denyTargets: ReadonlyArray<string>
    /** PEM file by its absolute path, "" for none. */
    readonly extraCaFile: string
    readonly concurrency: number
    readonly concurrencyPerEndpoint: number
  }
  readonly rates: {
    readonly sources: ReadonlyArray<RateSource>
    /** Price of one unit in USD, as a decimal, by symbol. */
    readonly fixed: Readonly<Record<string, string>>
    /** Where Coinbase and Kraken are asked; no slash at the end. */
    readonly coinbaseUrl: string
    readonly krakenUrl: string
  }
  readonly portal: { readonly enabled: boolean; readonly allow: ReadonlyArray<string> }
  readonly log: { readonly level: LogLevel; readonly format: "json" | "pretty" }
  readonly telemetry: { readonly otlpEndpoint: string }
  readonly retention: { readonly requests: Duration.Duration; readonly deliveries: Duration.Duration }
  readonly alerts: { readonly url: string }
  /** One entry per configured chain and mode. */
  readonly chains: ReadonlyArray<ChainSettings>
}
