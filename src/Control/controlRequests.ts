import { Schema } from "effect"
import { longestPage } from "../Auth/inputFields.ts"
import { NetworkTokens } from "../Domain/amountDecimals.ts"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { RepairRefused } from "../Domain/RepairErrors.ts"
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
/** Both modes, or one. */
export const Modes = Schema.Array(Mode).pipe(Schema.maxItems(2))

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
