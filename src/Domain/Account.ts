import { Schema } from "effect"
import { iso } from "../lib/moment.ts"
import type { Mode } from "./Chain.ts"
import type { AccountId, ApiKeyId } from "./Ids.ts"

/** The owner of a record. Nothing is shared between accounts, nor between the two modes of an account. */
export interface Owner {
  readonly account: AccountId
  readonly mode: Mode
}

/** The least and the most bytes that a quota can be. The least is a few hundred payments. */
export const leastQuota = 1_000_000
export const highestQuota = Number.MAX_SAFE_INTEGER

/** What the operator lets an account do; undefined: as configured. */
export interface AccountTerms {
  /** Bytes that it may store; 0: as many as the disk holds. */
  readonly quotaBytes: number | undefined
  /** Requests of all its keys together, in each mode. */
  readonly perMinute: number | undefined
  readonly perHour: number | undefined
}

/** Owns keys, payments and webhooks. */
export interface Account {
  readonly id: AccountId
  readonly name: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** The modes in which it has its own wallet. Empty: it uses the wallets of the configuration. */
  readonly ownWallets: ReadonlyArray<Mode>
  readonly terms: AccountTerms
}

/** There is no such account. */
export class UnknownAccount extends Schema.TaggedError<UnknownAccount>()("UnknownAccount", {
  message: Schema.String
}) {
  static readonly of = (id: string) =>
    new UnknownAccount({ message: `There is no account ${id}: tilld accounts list names all` })
}

/** An account with the id that was asked for exists already: the request was made twice. Nothing was changed. */
export class AccountExists extends Schema.TaggedError<AccountExists>()("AccountExists", { message: Schema.String }) {
  static readonly of = (id: string) =>
    new AccountExists({
      message: `There is an account ${id} already, and nothing was changed: tilld accounts list shows it`
    })
}

/** The wallet is already used in the other mode: test payments must never share addresses with live ones. */
export class WalletInOtherMode extends Schema.TaggedError<WalletInOtherMode>()("WalletInOtherMode", {
  message: Schema.String
}) {
  static readonly of = (mode: Mode) =>
    new WalletInOtherMode({
      message: `The ${mode} wallet is used in the other mode already; give another account's extended public key`
    })
}

/** A wallet cannot be asked for a proof, or the proof does not count. Nothing was changed. */
export class ProofRefused extends Schema.TaggedError<ProofRefused>()("ProofRefused", { message: Schema.String }) {}

/** The logo cannot be shown, or the currency is off. Nothing was changed. */
export class ShopRefused extends Schema.TaggedError<ShopRefused>()("ShopRefused", {
  part: Schema.Literal("logo", "currency"),
  /** What it must be: `must be …`. */
  rule: Schema.String
}) {
  override get message() {
    return `The ${this.part} ${this.rule}`
  }
}

/** The key has ended, or was rolled. Nothing was changed. */
export class KeyEnded extends Schema.TaggedError<KeyEnded>()("KeyEnded", { message: Schema.String }) {
  /** @param at Unix milliseconds */
  static readonly of = (id: ApiKeyId, how: "expired" | "was revoked", at: number) =>
    new KeyEnded({ message: `Key ${id} ${how} at ${iso(at)}: make another one with tilld keys create` })
  static readonly rolled = (id: ApiKeyId, to: ApiKeyId) =>
    new KeyEnded({ message: `Key ${id} was rolled to ${to}: roll that one, or end ${id} with tilld keys revoke ${id}` })
}

/** A key with the id that was asked for exists already: the request was made twice. Nothing was changed. */
export class KeyExists extends Schema.TaggedError<KeyExists>()("KeyExists", { id: Schema.String }) {
  override get message() {
    return `Key ${this.id} was made before, and shown once: if nobody has kept it, tilld keys roll ${this.id}`
  }
}

const quotaTexts = {
  rows: (quota: number) =>
    `The account has stored its ${quota} bytes; its payments go on. Ask the operator for a higher quota ` +
    "(tilld accounts change --quota), or delete webhook endpoints that you do not need: each stores every event.",
  payments: (quota: number) =>
    `The open payments of the account may yet store several times its ${quota} bytes; they go on. Wait until ` +
    "some have ended, or delete webhook endpoints that you do not need: each stores every event. The operator may " +
    "raise the quota (tilld accounts change --quota).",
  test: (quota: number) =>
    `Test mode has used half of the account's ${quota} bytes, as much as it may; live mode goes on. Wait until some of ` +
    "it has been deleted by age, or ask the operator for a higher quota (tilld accounts change --quota)."
} as const

/** The account has used up its quota, or its test mode as much as that may. Nothing was changed. */
export class QuotaExceeded extends Schema.TaggedError<QuotaExceeded>()("QuotaExceeded", {
  /** Bytes. */
  quota: Schema.Number,
  /** What takes it: what is stored, what the open payments may yet store, or what test mode has of both. */
  by: Schema.Literal("rows", "payments", "test")
}) {
  override get message() {
    return quotaTexts[this.by](this.quota)
  }
}

/** As many as an account may have. Nothing was changed. */
export class TooMany extends Schema.TaggedError<TooMany>()("TooMany", { message: Schema.String }) {
  static readonly keys = (most: number, mode: Mode) =>
    new TooMany({
      message: `The account has ${most} working keys in ${mode} mode, as many as it may: revoke one that nothing uses (tilld keys revoke)`
    })
  static readonly rolledKeys = (most: number, mode: Mode) =>
    new TooMany({
      message: `${most} rolled keys of the account still work in ${mode} mode, as many as may: revoke one of them, or wait for its end`
    })
  static readonly people = (most: number) =>
    new TooMany({ message: `The account has ${most} people, as many as it may: disable somebody who does not use it` })
}

/** A limit that only the operator may give. Nothing was changed. */
export class LimitRefused extends Schema.TaggedError<LimitRefused>()("LimitRefused", {
  limit: Schema.Literal("perMinute", "perHour"),
  /** What it must be: `must be …`. */
  rule: Schema.String
}) {
  override get message() {
    return `The limit ${this.limit === "perMinute" ? "a minute" : "an hour"} ${this.rule}`
  }
}
