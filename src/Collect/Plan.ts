/**
 * A plan of a collection: what moves from which receiving address to where, by which way, and at which fees at most. It is made
 * where the chains can be asked, and signed where nothing can. Amounts are in base units, times are Unix seconds.
 */

import { createHash } from "node:crypto"
import { wordlist } from "@scure/bip39/wordlists/english"
import { Data, Schema } from "effect"
import { isAddress, maxUint256 } from "viem"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { exceptionIdForm, RefundId } from "../Domain/Ids.ts"
import { maybe, must } from "../lib/annotations.ts"
import { canonicalJson } from "../lib/Json.ts"

/** A collection cannot be planned, signed or sent as it is: nothing was done. The message says why, and what to do. */
export class CollectRefused extends Data.TaggedError("CollectRefused")<{ readonly message: string }> {}

export const collectRefusal = (message: string) => new CollectRefused({ message })

const integer = (least: number, most: number) =>
  Schema.Int.pipe(Schema.between(least, most)).annotations({
    message: () => ({ message: `must be a whole number from ${least} to ${most}`, override: true })
  })
const list = <A, I>(of: Schema.Schema<A, I>, most: number) =>
  Schema.Array(of).pipe(Schema.maxItems(most, { message: () => `must have ${most} entries at most` }))
const text = (what: string, fits: (text: string) => boolean) =>
  Schema.String.pipe(Schema.filter(fits, { message: () => `must be ${what}` }))

const isUnits = (of: string) => /^(0|[1-9][0-9]{0,77})$/.test(of) && BigInt(of) <= maxUint256
const Units = text("a number of base units below 2^256", isUnits)
const Address = text("an address", (of) => isAddress(of))
const Hash = Schema.String.pipe(Schema.pattern(/^0x[0-9a-f]{64}$/))
const Index = integer(0, 2 ** 31 - 1)
const Nonce = integer(0, 2 ** 48 - 1)
const Decimals = integer(0, 36)
const Seconds = integer(0, 2 ** 33 - 1)

/** A token that moves: its contract, and for an authorization the domain of its signatures (EIP-712). */
export const PlannedToken = Schema.Struct({
  symbol: Schema.String,
  contract: Address,
  decimals: Decimals,
  domain: maybe(Schema.Struct({ name: Schema.String, version: Schema.String }))
})
export type PlannedToken = typeof PlannedToken.Type

/**
 * `authorization`: the address signs a transfer (EIP-3009) that a transaction of the sponsor carries out. `token`: the address
 * transfers, with gas from the sponsor where it lacks some. `native`: the address sends its coin, less the gas.
 */
export const Way = Schema.Literal("authorization", "token", "native")
export type Way = typeof Way.Type

/** A transfer of one address. */
export const PlannedMove = Schema.Struct({
  way: Way,
  /** The symbol of its token in the plan's list; absent for the chain's own coin. */
  token: maybe(Schema.String),
  address: Address,
  /** The i of its path m/44'/60'/n'/0/i. */
  index: Index,
  /** Where it goes, unless that is the plan's destination: to whom a refund is sent. */
  to: maybe(Address),
  /** The refund that it pays, and the exception whose money that is. */
  refund: maybe(must("be the id of a refund", RefundId)),
  exception: maybe(text("the id of an exception", (id) => exceptionIdForm.test(id))),
  amount: Units,
  /** Gas that its transaction may use; of an authorization, its share of the sponsor's. */
  gas: Units,
  /** Wei that the sponsor sends to the address first, for its gas; "0" where the address has enough, or needs none. */
  funding: Units,
  /** The nonce of its transaction; absent for an authorization, which has no transaction of its own. */
  nonce: maybe(Nonce)
})
export type PlannedMove = typeof PlannedMove.Type

/** An address or an amount that stays where it is, and why. */
export const LeftOut = Schema.Struct({
  ...{ address: Address, index: Index, currency: Schema.String, decimals: Decimals, amount: Units, why: Schema.String }
})
export type LeftOut = typeof LeftOut.Type

/** Moves of a plan at most. */
export const mostMoves = 5_000

/** Seconds that the heads of two providers may be apart when a plan is made. */
export const mostApart = 3_600

export const planFormat = "tilld sweep plan 2"

const fields = {
  format: must(`be "${planFormat}", which tilld sweep plan writes`, Schema.Literal(planFormat)),
  chain: ChainName,
  mode: Mode,
  chainId: integer(1, Number.MAX_SAFE_INTEGER),
  /** The n of the wallet's account m/44'/60'/n', whose extended public key the addresses are derived from. */
  account: Index,
  /** The symbol of the chain's own coin. */
  coin: Schema.String,
  /** As of when it holds. */
  block: Schema.Struct({ number: integer(0, Number.MAX_SAFE_INTEGER), hash: Hash, time: Seconds }),
  destination: Address,
  tokens: list(PlannedToken, 100),
  moves: list(PlannedMove, mostMoves),
  leftOut: Schema.Array(LeftOut),
  /** Wei for a unit of gas of each step, ascending: a transaction that does not get into a block is replaced by the next one. */
  fees: Schema.NonEmptyArray(Schema.Struct({ most: Units, tip: Units })).pipe(
    Schema.maxItems(10, { message: () => "must have 10 entries at most" })
  ),
  /** Gas of the sponsor's transactions: of a batch of authorizations apart from the shares of these, and of a funding. */
  gas: Schema.Struct({ batch: Units, funding: Units }),
  /** Wei that a transaction pays on top for its data, at most: one with a batch, and any other. 0 on chains without such a fee. */
  dataFees: Schema.Struct({ batch: Units, single: Units }),
  /** When authorizations end. */
  validBefore: Seconds,
  /** Who pays for what the addresses do not pay themselves: index 0 of the wallet's second branch. */
  sponsor: Schema.Struct({ address: Address, nonce: Nonce, needsWei: Units, hasWei: Units })
}

const Unsigned = Schema.Struct(fields)
export type Unsigned = typeof Unsigned.Type

/** With its digest, by which people recognise it on another machine. */
export const Plan = Schema.Struct({ ...fields, digest: Hash, words: Schema.String })
export type Plan = typeof Plan.Type

/** SHA-256 of a value's canonical JSON, as `0x` and 64 digits. */
export const digestOf = (value: unknown): string =>
  `0x${createHash("sha256").update(canonicalJson(value)).digest("hex")}`

/** Words that stand for the first 66 bits of a digest. */
const wordsOf = (digest: string): string => {
  const bits = BigInt(digest) >> 190n
  return Array.from({ length: 6 }, (_, place) => wordlist[Number((bits >> BigInt(11 * (5 - place))) & 2047n)]).join(" ")
}

/** The plan with its digest. */
export const digested = (unsigned: Unsigned): Plan => {
  const digest = digestOf(unsigned)
  return { ...unsigned, digest, words: wordsOf(digest) }
}

/** Whether nothing of it was changed since it was made. */
export const isWhole = ({ digest, words, ...unsigned }: Plan): boolean => {
  const made = digested(unsigned)
  return made.digest === digest && made.words === words
}

/** To whom a move goes. */
export const receiverOf = ({ destination }: Pick<Plan, "destination">, { to = destination }: PlannedMove): string => to

/** The token that a move moves; undefined for the chain's own coin. */
export const tokenOf = ({ tokens }: Pick<Plan, "tokens">, { token }: PlannedMove): PlannedToken | undefined =>
  token === undefined ? undefined : tokens.find(({ symbol }) => symbol === token)

/** The sums of what moves, by currency: base units. */
export const totalsOf = (plan: Pick<Plan, "coin" | "moves" | "tokens">) =>
  [...new Set(plan.moves.map(({ token = plan.coin }) => token))].map((currency) => {
    const moves = plan.moves.filter(({ token = plan.coin }) => token === currency)
    const decimals = plan.tokens.find(({ symbol }) => symbol === currency)?.decimals ?? 18
    return {
      currency,
      decimals,
      amount: `${moves.reduce((sum, { amount }) => sum + BigInt(amount), 0n)}`,
      count: moves.length
    }
  })
