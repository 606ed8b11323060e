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

/** A contract that payers mistake for an accepted token, such as the bridged USDC.e. */
export interface WrongToken {
  readonly name: string
  /** Lower case. */
  readonly address: string
}

export interface ChainSettings extends Network {
  /** At least one. Secret: providers put their keys into the URL. */
  readonly rpcUrls: ReadonlyArray<Redacted.Redacted<string>>
  readonly chainId: number
  /** Confirmations, counting the block of the transaction: 1 is "in a block". */
  readonly confirmations: number
  /** The interval while a payment of the mode is open. */
  readonly pollInterval: Duration.Duration
  readonly balanceInterval: Duration.Duration
  readonly startBlock: "latest" | number
  readonly tokens: ReadonlyArray<TokenSettings>
  readonly wrongTokens: ReadonlyArray<WrongToken>
  readonly policies: ReadonlyArray<FinalityPolicy>
  /** Blocks that identify the public network; empty for any other network. */
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
    /** Absolute, outside the database's folder: holds the mark by which a restored copy of the database is recognised. */
    readonly markFolder: string
  }
  readonly control: {
    /** Absolute path of the read-only control socket, outside the database's folder; "" for none. */
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
    /** Accepted underpayment in basis points (1/100 %). */
    readonly toleranceBps: number
    /** With several providers of which only one answers: how long the others are waited for. */
    readonly soleProviderPatience: Duration.Duration
    /** How far a head may be ahead of this machine's clock. Beyond, the head is refused, or the clock is wrong. */
    readonly clockTolerance: Duration.Duration
    /** After this many addresses in a row without a history the rest of a wallet is assumed unused (gap limit). */
    readonly lookAhead: number
    /** Transfers worth less than this in the payment's currency are settled as a sum. A decimal; "0": no such minimum. */
    readonly dustFloorUsd: string
  }
  readonly accounts: {
    /** The disk quota of one account. */
    readonly quotaBytes: number
  }
  readonly webhooks: {
    /** CIDRs. */
    readonly allowTargets: ReadonlyArray<string>
    /** CIDR blocks that nothing is sent to, even if `allowTargets` has them. */
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
    /** Base URLs of Coinbase and Kraken, without a trailing slash. */
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
