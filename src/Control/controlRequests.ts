import { Schema } from "effect"
import { GivenName, longestOverlap, longestPage, NotFound } from "../Auth/inputFields.ts"
import { highestQuota, leastQuota } from "../Domain/Account.ts"
import { UnknownAccount, WalletInOtherMode } from "../Domain/AccountErrors.ts"
import { highestLimits } from "../Domain/ApiKey.ts"
import { NetworkTokens } from "../Domain/amountDecimals.ts"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { RepairRefused } from "../Domain/RepairErrors.ts"
import { RotationUnderWay, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { StoreUnavailable } from "../Sql/Db.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const PageLimit = Schema.Int.pipe(Schema.between(1, longestPage))
/** Most address indexes that one jump skips: each skipped address is derived, stored and watched. */
export const farthestJump = 50_000
/** The latest time that a JavaScript Date can represent, Unix milliseconds. */
export const latestMoment = 8.64e15
/** A time in Unix milliseconds. */
export const Moment = Schema.Int.pipe(Schema.between(0, latestMoment))
const BlockNumber = Schema.Int.pipe(Schema.nonNegative())
const Overlap = Schema.Duration.pipe(Schema.lessThanOrEqualToDuration(longestOverlap))
/** Both modes, or one. */
export const Modes = Schema.Array(Mode).pipe(Schema.maxItems(2))

/** The rows of a list behind the one with an id; the longest page unless `limit` is given. */
const Page = { after: optional(Schema.String), limit: Schema.optionalWith(PageLimit, { default: () => longestPage }) }

/** The daemon and the command are of different versions. */
export class NotUnderstood extends Schema.TaggedError<NotUnderstood>()("NotUnderstood", { message: Schema.String }) {
  static readonly of = () =>
    new NotUnderstood({
      message: "The daemon does not understand this command: it runs another version of tilld; restart it"
    })
}

/** The request came over the read-only socket, and administers. */
export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", { message: Schema.String }) {
  static readonly at = (path: string) =>
    new Forbidden({
      message:
        `Not allowed: ${path} takes commands that only read, and this one does more. Run it as a user of the daemon's ` +
        "group, without TILLD_SOCKET"
    })
}

const AccountView = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  createdAt: Schema.String,
  /** The modes in which the account has its own wallet. In the others it uses the configuration's. */
  wallets: Schema.Union(Schema.Literal("shared"), Schema.Array(Mode))
})

/** An account with what it has stored, in bytes, and what it may do; without `quotaBytes` it has no quota. */
const ListedAccount = Schema.Struct({
  ...AccountView.fields,
  usedBytes: Schema.Number,
  quotaBytes: optional(Schema.Number),
  /** Requests of all its keys together, in each mode. */
  perMinute: Schema.Number,
  perHour: Schema.Number
})

const limitUpTo = (highest: number) => optional(Schema.NullOr(Schema.Int.pipe(Schema.between(1, highest))))

export class CreateAccount extends Schema.TaggedRequest<CreateAccount>()("CreateAccount", {
  /** Extended public keys. In a mode without one the account uses the configuration's wallet. */
  payload: {
    name: GivenName,
    wallets: Schema.Struct({ live: optional(Schema.String), test: optional(Schema.String) })
  },
  success: AccountView,
  failure: Schema.Union(WalletInOtherMode, StoreUnavailable)
}) {}

/** Changes what an account may do. What is absent stays; null: as configured. */
export class ChangeAccount extends Schema.TaggedRequest<ChangeAccount>()("ChangeAccount", {
  payload: {
    id: AccountId,
    /** 0: no quota. */
    quotaBytes: optional(
      Schema.NullOr(Schema.Union(Schema.Literal(0), Schema.Int.pipe(Schema.between(leastQuota, highestQuota))))
    ),
    perMinute: limitUpTo(highestLimits.perMinute),
    perHour: limitUpTo(highestLimits.perHour)
  },
  success: ListedAccount,
  failure: Schema.Union(UnknownAccount, StoreUnavailable)
}) {}

export class ListAccounts extends Schema.TaggedRequest<ListAccounts>()("ListAccounts", {
  payload: Page,
  success: Schema.Array(ListedAccount),
  failure: Schema.Union(NotFound, StoreUnavailable)
}) {}

export const SecretView = Schema.Struct({
  secret: Schema.String,
  /** The previous secret, while it still signs. */
  previous: optional(Schema.Struct({ secret: Schema.String, until: Schema.String }))
})
export type SecretView = typeof SecretView.Type

export class ShowSecret extends Schema.TaggedRequest<ShowSecret>()("ShowSecret", {
  payload: { account: AccountId, mode: Mode },
  success: SecretView,
  failure: Schema.Union(UnknownAccount, SecretUnreadable, StoreUnavailable)
}) {}

export class RotateSecret extends Schema.TaggedRequest<RotateSecret>()("RotateSecret", {
  payload: {
    account: AccountId,
    mode: Mode,
    overlap: Overlap
  },
  success: SecretView,
  failure: Schema.Union(UnknownAccount, RotationUnderWay, SecretUnreadable, StoreUnavailable)
}) {}

/** The configured networks with their tokens, for commands that show amounts and may not read the configuration. */
export class ListTokens extends Schema.TaggedRequest<ListTokens>()("ListTokens", {
  payload: {},
  success: Schema.Array(NetworkTokens),
  failure: Schema.Never
}) {}

/** Reads one part of a range of blocks again. The next request asks for the next part. */
export class Rescan extends Schema.TaggedRequest<Rescan>()("Rescan", {
  payload: { chain: ChainName, mode: Mode, from: BlockNumber, to: optional(BlockNumber) },
  success: Schema.Struct({
    /** The last block that was read in this part. */
    through: Schema.Number,
    /** The end of the range: the given block, otherwise the scanned head. */
    to: Schema.Number,
    receipts: Schema.Number,
    added: Schema.Number
  }),
  failure: Schema.Union(RepairRefused, StoreUnavailable)
}) {}

export class Claim extends Schema.TaggedRequest<Claim>()("Claim", {
  payload: { chain: ChainName, mode: Mode, txHash: Schema.String },
  success: Schema.Struct({
    blockNumber: Schema.Number,
    blockHash: Schema.String,
    credits: Schema.Array(
      Schema.Struct({
        address: Schema.String,
        currency: Schema.String,
        amount: Schema.String,
        /** Absent when the address was handed out by a database that was lost. */
        payment: optional(Schema.String)
      })
    ),
    added: Schema.Number
  }),
  failure: Schema.Union(RepairRefused, StoreUnavailable)
}) {}

/** Skips addresses: moves the next index of all wallets ahead. */
export class JumpAddresses extends Schema.TaggedRequest<JumpAddresses>()("JumpAddresses", {
  payload: { by: Schema.Int.pipe(Schema.between(1, farthestJump)) },
  success: Schema.Array(
    Schema.Struct({
      /** The wallet's fingerprint, as in logs. */
      wallet: Schema.String,
      /** The next index before, and now. */
      from: Schema.Number,
      next: Schema.Number,
      usedBy: Schema.Array(Schema.String)
    })
  ),
  failure: StoreUnavailable
}) {}
