/** What the commands that plan and broadcast ask about refunds: what is owed, that they begin, and what became of them. */
import { Effect, Schema } from "effect"
import { getAddress } from "../../Domain/Address.ts"
import { BaseUnits } from "../../Domain/Amount.ts"
import { ChainName, Mode } from "../../Domain/Chain.ts"
import { AlreadyDecided } from "../../Domain/Exception.ts"
import { plannedRefundId, RefundId } from "../../Domain/Ids.ts"
import { isStanding, RefundSettled, RefundUnderWay } from "../../Domain/Refund.ts"
import { present } from "../../lib/Json.ts"
import { HashField, maybe, otherwise } from "../../Operations/inputFields.ts"
import { operation } from "../../Operations/operation.ts"
import { Reader } from "../../Sql/Db.ts"
import * as CollectedRepo from "../addresses/CollectedRepo.ts"
import * as ExceptionsRepo from "../ExceptionsRepo.ts"
import * as RefundsRepo from "../RefundsRepo.ts"
import { whyExceptionUndecidable } from "../undecidable.ts"
import { accountPaying, beginPaying } from "./refund.ts"

/** Refunds that one request asks about at most. */
export const mostRefundsAsked = 500

const OwedRefund = Schema.Struct({
  /** As it was asked for: `exc_…` or `ref_…`. */
  of: Schema.String,
  /** Why it is not paid; absent where it is owed, and then the rest is there but what is not known. */
  problem: maybe(Schema.String),
  refund: maybe(RefundId),
  exception: maybe(Schema.String),
  chain: maybe(ChainName),
  mode: maybe(Mode),
  currency: maybe(Schema.String),
  amount: maybe(Schema.String),
  address: maybe(Schema.String),
  /** The i of its path. */
  index: maybe(Schema.Number),
  /** To whom, where that was noted. */
  to: maybe(Schema.String),
  /** How many transactions that its address has sent tilld has noted. */
  notedTransactions: maybe(Schema.Number),
  /** Base units of its currency there that stay: they count for the payment, or go back otherwise. */
  kept: maybe(Schema.String),
  /** Why it is not decided on yet, and whether --uncorroborated waives that. */
  undecidable: maybe(Schema.Struct({ message: Schema.String, isWaivable: Schema.Boolean }))
})
export type OwedRefund = typeof OwedRefund.Type

export const owedRefunds = operation({
  name: "sweep owed",
  summary: "Show what open exceptions and noted refunds a plan pays, and why it does not pay others",
  input: {
    of: otherwise(Schema.Array(Schema.String).pipe(Schema.maxItems(mostRefundsAsked)), () => []),
    /** All that were noted for a receiver and have no transaction yet. */
    all: otherwise(Schema.Boolean, () => false),
    /** Those that a plan has begun are owed to it. */
    digest: maybe(HashField)
  },
  output: Schema.Array(OwedRefund),
  refusals: [],
  run: Effect.fnUntraced(function* ({ all, digest, of }) {
    const reader = yield* Reader
    const ids = all ? (yield* RefundsRepo.payable(reader, mostRefundsAsked)).map(({ id }) => id) : of
    return yield* Effect.forEach(
      ids,
      Effect.fnUntraced(function* (of) {
        const exception = of.startsWith("exc_") ? yield* ExceptionsRepo.byId(reader, of) : undefined
        const planned = exception && (yield* RefundsRepo.plannedOf(reader, exception.id))
        const underWay = planned?.filter(({ status }) => status === "begun")
        const begun = underWay?.find(({ plan }) => plan?.digest === digest)
        const id = begun?.id ?? (exception && planned ? plannedRefundId(exception.id, planned.length) : of)
        const refund = begun ?? (yield* RefundsRepo.byId(reader, id))
        const isOwed =
          refund !== undefined && isStanding(refund)
            ? (refund.status === "noted" && refund.txHash === undefined) ||
              (refund.status === "begun" && refund.plan?.digest === digest)
            : exception?.status === "open" && exception.kind !== "reorged"
        if (!isOwed) {
          const [other = refund?.status === "begun" ? refund : undefined] = underWay ?? []
          if (other !== undefined) {
            const free = `If nothing of it was sent, tilld refunds drop ${other.id} frees it`
            return { of, problem: `${of} is sent by another plan: run its broadcast to its end. ${free}` }
          }
          const is = refund === undefined ? "is not an open exception, nor a noted refund" : `is ${refund.status}`
          return { of, problem: `${of} ${is}: tilld payments exceptions and tilld refunds list show what is open` }
        }
        const place = refund !== undefined && isStanding(refund) ? refund : exception
        if (place === undefined) return { of, problem: `${of} is not known` }
        const { chain, currency, mode } = place
        const index = exception?.index ?? (yield* RefundsRepo.walletIndexOf(reader, place.address))
        const undecidable = exception && begun === undefined && (yield* whyExceptionUndecidable(reader, exception))
        const address = getAddress(place.address as `0x${string}`)
        const noted = (yield* CollectedRepo.transactionsOf(reader, [{ chain, mode, address }]))({
          chain,
          mode,
          address
        })
        const kept = (yield* CollectedRepo.keptBeside(reader, [place]))(place)
        const to = place === refund ? refund.to : undefined
        return {
          ...{ of, refund: id as RefundId, chain, mode, currency, amount: `${place.amount}`, address },
          ...present({ exception: exception?.id, index, to: to && getAddress(to as `0x${string}`) }),
          ...(undecidable ? { undecidable } : {}),
          ...{ notedTransactions: noted, kept: `${kept}` }
        } satisfies OwedRefund
      }),
      { concurrency: 1 }
    )
  })
})

const Begun = Schema.Struct({
  refund: RefundId,
  exception: maybe(Schema.String),
  amount: BaseUnits,
  to: Schema.String,
  place: Schema.NonNegativeInt,
  way: Schema.Literal("authorization", "token", "native"),
  /** The transaction that has sent it. */
  txHash: maybe(HashField)
})

export const beginRefunds = operation({
  name: "sweep begin",
  summary: "Record that signed transfers send refunds, before they are sent, as tilld sweep broadcast does",
  input: {
    digest: HashField,
    /** Something of the plan was sent before: what a restored database lacks is put back. */
    wasSent: otherwise(Schema.Boolean, () => false),
    refunds: Schema.Array(Begun).pipe(Schema.maxItems(mostRefundsAsked))
  },
  /** Those that cannot be put back. */
  output: Schema.Struct({ unknown: Schema.Array(Schema.Struct({ refund: RefundId, why: Schema.String })) }),
  refusals: [RefundSettled, RefundUnderWay, AlreadyDecided],
  audit: ({ digest, refunds, wasSent }) => ({
    digest,
    wasSent,
    refunds: refunds.map(({ refund }) => refund).join(" ")
  }),
  run: Effect.fnUntraced(function* ({ digest, refunds, wasSent }) {
    const all = refunds.map(({ amount, exception, ...one }) => ({ ...one, digest, exception, amount: BigInt(amount) }))
    return { unknown: yield* beginPaying(all, wasSent) }
  })
})

export const accountRefunds = operation({
  name: "sweep account",
  summary: "Record which transactions have sent refunds, and which refunds are not sent any more",
  input: {
    digest: HashField,
    sent: Schema.Array(Schema.Struct({ refund: RefundId, txHash: HashField })).pipe(Schema.maxItems(mostRefundsAsked)),
    unsent: Schema.Array(RefundId).pipe(Schema.maxItems(mostRefundsAsked))
  },
  output: Schema.Struct({ changed: Schema.Number }),
  refusals: [],
  audit: ({ digest, sent, unsent }) => ({ digest, sent: sent.length, unsent: unsent.length }),
  run: Effect.fnUntraced(function* ({ digest, sent, unsent }) {
    return { changed: yield* accountPaying(digest, sent, unsent) }
  })
})
