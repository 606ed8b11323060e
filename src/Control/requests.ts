import { Schema } from "effect"
import { UnknownAccount, WalletInOtherMode } from "../Domain/AccountErrors.ts"
import { Permission } from "../Domain/ApiKey.ts"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { RepairRefused } from "../Domain/RepairErrors.ts"
import { RotationUnderWay, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { StoreUnavailable } from "../Sql/Db.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** The longest page of a list. A member of the group that may only read must not have all of a table in memory. */
export const longestPage = 1000
export const PageLimit = Schema.Int.pipe(Schema.between(1, longestPage))
/** How far one jump of the numbering goes at most: each that is skipped is derived, stored and watched. */
export const farthestJump = 50_000
/** The last one that a date can be, Unix milliseconds. */
export const latestMoment = 8.64e15
/** Unix milliseconds that are a date. */
export const Moment = Schema.Int.pipe(Schema.between(0, latestMoment))
/** What an account or a key is called. */
export const nameLength = 100
const Name = Schema.String.pipe(Schema.pattern(/^\P{C}+$/u), Schema.maxLength(nameLength))
const BlockNumber = Schema.Int.pipe(Schema.nonNegative())
/** Both modes, or one. */
export const Modes = Schema.Array(Mode).pipe(Schema.maxItems(2))

/** There is nothing of that id. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { message: Schema.String }) {}

/** The daemon and the command are of different versions. */
export class NotUnderstood extends Schema.TaggedError<NotUnderstood>()("NotUnderstood", { message: Schema.String }) {
  static readonly of = () =>
    new NotUnderstood({
      message: "The daemon does not understand this command: it runs another version of tilld; restart it"
    })
}

/** The socket that the command came through is for commands that only read. */
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
  /** Which wallets its payments go to: the configuration's, or its own in these modes. */
  wallets: Schema.Union(Schema.Literal("shared"), Schema.Array(Mode))
})

/** An account with what it takes of the disk: bytes that are stored, or that its open payments may still have to store. */
const ListedAccount = Schema.Struct({
  ...AccountView.fields,
  usedBytes: Schema.Number,
  quotaBytes: Schema.Number
})

export const KeyView = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  account: Schema.String,
  mode: Mode,
  lastFour: Schema.String,
  permissions: Schema.Array(Permission),
  createdAt: Schema.String,
  lastUsedAt: optional(Schema.String),
  expiresAt: optional(Schema.String),
  revokedAt: optional(Schema.String)
})
export type KeyView = typeof KeyView.Type

export class CreateKey extends Schema.TaggedRequest<CreateKey>()("CreateKey", {
  payload: {
    account: AccountId,
    mode: Mode,
    name: Name,
    permissions: Schema.Array(Permission).pipe(Schema.maxItems(Permission.literals.length)),
    expiresIn: optional(Schema.Duration)
  },
  success: Schema.Struct({
    id: Schema.String,
    key: Schema.String,
    mode: Mode,
    permissions: Schema.Array(Permission),
    account: Schema.String
  }),
  failure: Schema.Union(UnknownAccount, StoreUnavailable)
}) {}

export class ListKeys extends Schema.TaggedRequest<ListKeys>()("ListKeys", {
  payload: {},
  success: Schema.Array(KeyView),
  failure: StoreUnavailable
}) {}

export class RevokeKey extends Schema.TaggedRequest<RevokeKey>()("RevokeKey", {
  payload: { id: Schema.String },
  success: KeyView,
  failure: Schema.Union(NotFound, StoreUnavailable)
}) {}

export class CreateAccount extends Schema.TaggedRequest<CreateAccount>()("CreateAccount", {
  /** Extended public keys; without any the account uses the configuration's wallets. */
  payload: {
    name: Name,
    wallets: Schema.Struct({ live: optional(Schema.String), test: optional(Schema.String) })
  },
  success: AccountView,
  failure: Schema.Union(WalletInOtherMode, StoreUnavailable)
}) {}

export class ListAccounts extends Schema.TaggedRequest<ListAccounts>()("ListAccounts", {
  payload: {},
  success: Schema.Array(ListedAccount),
  failure: StoreUnavailable
}) {}

export const SecretView = Schema.Struct({
  secret: Schema.String,
  /** The one before, while it still signs. */
  previous: optional(Schema.Struct({ secret: Schema.String, until: Schema.String }))
})
export type SecretView = typeof SecretView.Type

export class ShowSecret extends Schema.TaggedRequest<ShowSecret>()("ShowSecret", {
  payload: { account: AccountId, mode: Mode },
  success: SecretView,
  failure: Schema.Union(UnknownAccount, SecretUnreadable, StoreUnavailable)
}) {}

/** The longest time for which two secrets sign. */
export const longestOverlap = "30 days"

export class RotateSecret extends Schema.TaggedRequest<RotateSecret>()("RotateSecret", {
  payload: {
    account: AccountId,
    mode: Mode,
    overlap: Schema.Duration.pipe(Schema.lessThanOrEqualToDuration(longestOverlap))
  },
  success: SecretView,
  failure: Schema.Union(UnknownAccount, RotationUnderWay, SecretUnreadable, StoreUnavailable)
}) {}

/** Reads a part of these blocks again; the rest is asked for with the next request. */
export class Rescan extends Schema.TaggedRequest<Rescan>()("Rescan", {
  payload: { chain: ChainName, mode: Mode, from: BlockNumber, to: optional(BlockNumber) },
  success: Schema.Struct({
    /** The last block that was read. */
    through: Schema.Number,
    /** The last one to be read: the given one, otherwise the scanned head. */
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
        /** Missing where a lost copy of the database handed out the address. */
        payment: optional(Schema.String)
      })
    ),
    added: Schema.Number
  }),
  failure: Schema.Union(RepairRefused, StoreUnavailable)
}) {}

/** Lets the numbering of all wallets jump ahead. */
export class JumpAddresses extends Schema.TaggedRequest<JumpAddresses>()("JumpAddresses", {
  payload: { by: Schema.Int.pipe(Schema.between(1, farthestJump)) },
  success: Schema.Array(
    Schema.Struct({
      /** The wallet's fingerprint, as logs have it. */
      wallet: Schema.String,
      /** The next index before, and now. */
      from: Schema.Number,
      next: Schema.Number,
      usedBy: Schema.Array(Schema.String)
    })
  ),
  failure: StoreUnavailable
}) {}
