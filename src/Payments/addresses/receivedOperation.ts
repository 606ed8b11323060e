import { Effect, Schema } from "effect"
import { ChainField, ModeField, maybe, otherwise } from "../../Auth/inputFields.ts"
import { asked } from "../../Auth/inputText.ts"
import { mustExist } from "../../Auth/mustExist.ts"
import { lazily, operation } from "../../Auth/operation.ts"
import { UnknownAccount } from "../../Domain/AccountErrors.ts"
import { AccountId } from "../../Domain/Ids.ts"
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
    after: asked(
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
    const { Reader } = yield* lazily(() => import("../../Sql.ts"))
    const reader = yield* Reader
    const { next, rows } = yield* repo.received(reader, { chain, mode }, account, after, window)
    return {
      addresses: rows.map(({ isOpen, isUnconfirmed, walletAccount, ...row }) => ({
        ...row,
        ...(walletAccount === null ? {} : { walletAccount }),
        isOpen: isOpen === 1,
        isUnconfirmed: isUnconfirmed === 1
      })),
      ...(next === undefined ? {} : { next })
    }
  })
})
