import { Data, Schema } from "effect"
import type { Mode } from "./Chain.ts"
import type { ApiKeyId } from "./Ids.ts"
import { iso } from "./Timestamp.ts"

/** There is no such account. */
export class UnknownAccount extends Schema.TaggedError<UnknownAccount>()("UnknownAccount", {
  message: Schema.String
}) {
  static readonly of = (id: string) =>
    new UnknownAccount({ message: `There is no account ${id}: tilld accounts list names all` })
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

/** The logo cannot be shown. Nothing was changed. */
export class LogoRefused extends Schema.TaggedError<LogoRefused>()("LogoRefused", {
  /** What it must be: `must be …`. */
  rule: Schema.String
}) {
  override get message() {
    return `The logo ${this.rule}`
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
export class KeyExists extends Data.TaggedError("KeyExists")<{ readonly id: ApiKeyId }> {}

/** The account has stored as much as `accounts.quota_bytes` allows. */
export class QuotaExceeded extends Data.TaggedError("QuotaExceeded")<{
  /** Bytes. */
  readonly quota: number
}> {}
