/** What operators do with receiving addresses: show where money came, note what was moved, skip addresses, prove the seed. */
import { Clock, Effect, Schema } from "effect"
import { mustExist } from "../../Auth/accountOperations.ts"
import { Chains } from "../../Chains.ts"
import { ProofRefused, UnknownAccount } from "../../Domain/Account.ts"
import { BaseUnits } from "../../Domain/Amount.ts"
import { AccountId } from "../../Domain/Ids.ts"
import { must } from "../../lib/annotations.ts"
import { iso } from "../../lib/moment.ts"
import { cut } from "../../lib/text.ts"
import { AccountField, ChainField, HashField, ModeField, maybe, otherwise } from "../../Operations/inputFields.ts"
import { operation, withFlag } from "../../Operations/operation.ts"
import { pricesOf } from "../../Quotes/frozenRates.ts"
import { Reader, Tx } from "../../Sql/Db.ts"
import { Writer } from "../../Sql.ts"
import { Addresses } from "./Addresses.ts"
import * as CollectedRepo from "./CollectedRepo.ts"
import { blindJump } from "./IndexMark.ts"
import type { Jumped } from "./numbering.ts"
import { ReceivedPayment } from "./receivedPayment.ts"
import { challengeOf, isSignedBy, parseProof, recordProof } from "./walletProof.ts"
import { allWalletUsers, walletOfOwner, walletWith } from "./walletUsers.ts"

/** Payments that one request looks at. */
const window = 5_000

export const listReceived = operation({
  name: "addresses received",
  summary: "Show the receiving addresses to which money came on a chain",
  input: {
    chain: ChainField,
    mode: ModeField,
    account: maybe(AccountId),
    after: withFlag(
      otherwise(Schema.NonNegativeInt, () => 0),
      { about: "The page behind this place", value: "N" }
    )
  },
  output: Schema.Struct({
    addresses: Schema.Array(ReceivedPayment),
    next: maybe(Schema.Number)
  }),
  refusals: [UnknownAccount],
  run: Effect.fnUntraced(function* ({ account, after, chain, mode }) {
    // An empty list would read as: nothing waits.
    if (account !== undefined) yield* mustExist(account)
    const reader = yield* Reader
    const { next, rows } = yield* CollectedRepo.received(reader, { chain, mode }, account, after, window)
    return {
      addresses: rows.map(({ held, isOpen, walletAccount, ...row }) => ({
        ...row,
        ...(walletAccount === null ? {} : { walletAccount }),
        isOpen: isOpen === 1,
        held: JSON.parse(held) as ReceivedPayment["held"]
      })),
      ...(next === undefined ? {} : { next })
    }
  })
})

/** Money that the daemon has not seen may be a customer's: it looks before anything is collected. */
export const readChain = operation({
  name: "sweep read",
  summary: "Have the daemon look at a chain, and tell up to which block it has read it",
  input: { chain: ChainField, mode: ModeField },
  output: Schema.Struct({ head: maybe(Schema.Number) }),
  refusals: [],
  run: Effect.fnUntraced(function* ({ chain, mode }) {
    const { health, look } = yield* Chains
    yield* look({ chain, mode })
    const head = (yield* health).find((one) => one.chain === chain && one.mode === mode)?.head
    return head === undefined ? {} : { head }
  })
})

/** Transfers, and transactions, that one request notes at most. */
export const mostCollected = 500

const Transfer = Schema.Struct({
  hash: HashField,
  /** The place of the move in its plan. */
  place: Schema.NonNegativeInt,
  address: Schema.String,
  to: Schema.String,
  currency: Schema.String,
  amount: BaseUnits,
  /** The refund that it pays. */
  refund: maybe(Schema.String),
  /** The time of its block, Unix seconds. */
  at: Schema.NonNegativeInt,
  /** Of the address's own transaction. */
  nonce: maybe(Schema.NonNegativeInt)
})

const Gas = Schema.Struct({
  hash: HashField,
  payer: Schema.String,
  to: Schema.String,
  wei: BaseUnits,
  /** The time of its block, Unix seconds. */
  at: Schema.NonNegativeInt
})

/** Notes what a broadcast has moved, and what it has paid for gas; the same again changes nothing. */
export const recordCollected = operation({
  name: "sweep record",
  summary: "Note what was moved away from receiving addresses, and its gas, as tilld sweep broadcast does at its end",
  input: {
    chain: ChainField,
    mode: ModeField,
    digest: HashField,
    transfers: Schema.Array(Transfer).pipe(Schema.maxItems(mostCollected)),
    gas: Schema.Array(Gas).pipe(Schema.maxItems(mostCollected))
  },
  output: Schema.Struct({ added: Schema.Number }),
  refusals: [],
  audit: ({ chain, digest, gas, mode, transfers }) => ({
    ...{ chain, mode, digest, transfers: transfers.length, transactions: gas.length }
  }),
  run: Effect.fnUntraced(function* ({ chain, gas, mode, transfers }) {
    const writer = yield* Writer
    const moment = { now: yield* Clock.currentTimeMillis, prices: yield* pricesOf }
    const given = transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` }))
    const paid = gas.map(({ wei, ...transaction }) => ({ ...transaction, wei: `${wei}` }))
    const added = yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const added = yield* CollectedRepo.add(tx, { chain, mode }, given, moment)
        yield* CollectedRepo.addGas(tx, { chain, mode }, paid, moment)
        return added
      })
    )
    return { added }
  })
})

/** Maximum address indexes that one jump skips: each skipped address is derived, stored and watched. */
const farthestJump = 50_000

/** Names who uses each wallet. */
export const withUsers = (all: ReadonlyArray<Jumped>) =>
  Effect.map(allWalletUsers, (users) =>
    all.map((jumped) => ({
      ...jumped,
      usedBy: users.filter(({ fingerprint }) => fingerprint === jumped.wallet).map(({ name }) => name)
    }))
  )

/** Skips addresses: moves the next index of all wallets ahead. */
export const jumpAddresses = operation({
  name: "addresses jump",
  summary:
    "Skip addresses of every wallet, and watch them: after a snapshot of the whole machine was restored, which tilld cannot tell",
  input: {
    by: withFlag(
      otherwise(must(`be 1 to ${farthestJump}`, Schema.Int.pipe(Schema.between(1, farthestJump))), () => blindJump),
      { about: `How many addresses to skip, 1 to ${farthestJump}; otherwise ${blindJump}`, value: "N" }
    )
  },
  output: Schema.Array(
    Schema.Struct({
      /** The wallet's fingerprint, as in logs. */
      wallet: Schema.String,
      /** The next index before, and now. */
      from: Schema.Number,
      next: Schema.Number,
      usedBy: Schema.Array(Schema.String)
    })
  ),
  refusals: [],
  audit: ({ by }) => ({ by }),
  run: Effect.fnUntraced(function* ({ by }) {
    const { jump } = yield* Addresses
    return yield* withUsers(yield* jump(by))
  })
})

/** Days after its challenge on which a proof is taken: the way to the seed may be long. */
const validDays = 31
const dayLength = 86_400_000

export const challengeWallet = operation({
  name: "wallet challenge",
  summary: "Print what tilld wallet prove signs, where the seed is, to show that you still hold it",
  input: { mode: ModeField, account: AccountField },
  output: Schema.Struct({ challenge: Schema.String }),
  refusals: [UnknownAccount, ProofRefused],
  run: Effect.fnUntraced(function* ({ account, mode }) {
    yield* mustExist(account)
    const wallet = yield* walletOfOwner({ account, mode })
    if (wallet === undefined) {
      return yield* new ProofRefused({
        message: `There is no ${mode} wallet: neither wallets.${mode} nor one of its own`
      })
    }
    const challenge = challengeOf(wallet, iso(yield* Clock.currentTimeMillis).slice(0, 10))
    return challenge === undefined
      ? yield* new ProofRefused({
          message: "The wallet's key is not the one of an account m/44'/60'/n': tilld cannot sign for its addresses"
        })
      : { challenge }
  })
})

export const checkProof = operation({
  name: "wallet check",
  summary: "Check what tilld wallet prove has signed, and note that the seed was shown to be held",
  input: {
    proof: withFlag(Schema.String, { about: "What tilld wallet prove has printed", value: "PROOF", isArgument: true })
  },
  output: Schema.Struct({ wallet: Schema.String, day: Schema.String, address: Schema.String }),
  refusals: [ProofRefused],
  audit: ({ proof }) => ({ proof: cut(proof, 200) }),
  run: Effect.fnUntraced(function* ({ proof }) {
    const parsed = parseProof(proof)
    if (parsed === undefined) {
      return yield* new ProofRefused({
        message: "This is not a proof: give the whole word that tilld wallet prove printed"
      })
    }
    const age = (yield* Clock.currentTimeMillis) - Date.parse(parsed.day)
    if (!(age >= 0 && age < validDays * dayLength)) {
      return yield* new ProofRefused({
        message: `The proof is of a challenge of ${parsed.day}, and counts for ${validDays} days: sign a new tilld wallet challenge`
      })
    }
    const wallet = yield* walletWith(parsed.fingerprint)
    if (wallet === undefined) {
      return yield* new ProofRefused({
        message: `Neither the configuration nor an account has the wallet ${parsed.fingerprint}`
      })
    }
    if (!(yield* isSignedBy(parsed, wallet))) {
      return yield* new ProofRefused({
        message: "The proof is not signed by the wallet's first address: nothing was noted"
      })
    }
    yield* (yield* Writer).write(recordProof(parsed))
    return { wallet: parsed.fingerprint, day: parsed.day, address: wallet.address(0) }
  })
})
