/** What the commands that collect ask: where money came, up to which block a chain was read, and to note what was moved. */
import { Clock, Effect, Schema } from "effect"
import { mustExist } from "../../Auth/accountOperations.ts"
import { UnknownAccount } from "../../Domain/Account.ts"
import { BaseUnits } from "../../Domain/Amount.ts"
import { AccountId } from "../../Domain/Ids.ts"
import { ChainField, HashField, ModeField, maybe, otherwise } from "../../Operations/inputFields.ts"
import { withFlag } from "../../Operations/inputText.ts"
import { lazily, operation } from "../../Operations/operation.ts"
import { Reader, Tx } from "../../Sql/Db.ts"
import { ReceivedPayment } from "./receivedPayment.ts"

/** Payments that one request looks at. */
const window = 5_000

export const listReceived = operation({
  name: "addresses received",
  summary: "Show the receiving addresses to which money came on a chain",
  needs: "store",
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
    const repo = yield* lazily(() => import("./ReceivedRepo.ts"))
    const reader = yield* Reader
    const { next, rows } = yield* repo.received(reader, { chain, mode }, account, after, window)
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
  needs: "daemon",
  input: { chain: ChainField, mode: ModeField },
  output: Schema.Struct({ head: maybe(Schema.Number) }),
  refusals: [],
  run: Effect.fnUntraced(function* ({ chain, mode }) {
    const { Chains } = yield* lazily(() => import("../../Chains.ts"))
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
  needs: "store",
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
    const repo = yield* lazily(() => import("./CollectedRepo.ts"))
    const { Writer } = yield* lazily(() => import("../../Sql.ts"))
    const writer = yield* Writer
    const { pricesOf } = yield* lazily(() => import("../../Quotes/frozenRates.ts"))
    const moment = { now: yield* Clock.currentTimeMillis, prices: yield* pricesOf }
    const given = transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` }))
    const paid = gas.map(({ wei, ...transaction }) => ({ ...transaction, wei: `${wei}` }))
    const added = yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const added = yield* repo.add(tx, { chain, mode }, given, moment)
        yield* repo.addGas(tx, { chain, mode }, paid, moment)
        return added
      })
    )
    return { added }
  })
})
