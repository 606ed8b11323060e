/** A payment to whose address money came, as who collects it needs it. */
import { Array as Arr, Schema } from "effect"
import { maybe } from "../../Auth/inputFields.ts"

export const ReceivedPayment = Schema.Struct({
  payment: Schema.String,
  account: Schema.String,
  address: Schema.String,
  /** The n and the i of its path m/44'/60'/n'/0/i. */
  walletAccount: maybe(Schema.Number),
  index: Schema.Number,
  isOpen: Schema.Boolean,
  isUnconfirmed: Schema.Boolean,
  openExceptions: Schema.Number
})
export type ReceivedPayment = typeof ReceivedPayment.Type

/** Undefined where the wallet's key does not tell its account. */
export const receivingPath = ({
  index,
  walletAccount
}: Pick<ReceivedPayment, "index" | "walletAccount">): string | undefined =>
  walletAccount === undefined ? undefined : `m/44'/60'/${walletAccount}'/0/${index}`

/** The payments at each address, which has one, unless the database was restored. */
export const byAddress = (received: ReadonlyArray<ReceivedPayment>) =>
  Object.values(Arr.groupBy(received, ({ address }) => address))

/** What is said of a payment whose address is left alone. */
export const awaitedText = {
  payment: "is open",
  exception: "has an open exception",
  confirmations: "has money that is not confirmed yet"
} as const

/** What has to end before an address is collected from, with its payment; undefined where nothing does. */
export const awaitedAt = (payments: ReadonlyArray<ReceivedPayment>) => {
  const open = payments.find(({ isOpen }) => isOpen)
  if (open !== undefined) return { is: "payment", payment: open.payment } as const
  const undecided = payments.find(({ openExceptions }) => openExceptions > 0)
  if (undecided !== undefined) return { is: "exception", payment: undecided.payment } as const
  const unconfirmed = payments.find(({ isUnconfirmed }) => isUnconfirmed)
  return unconfirmed && ({ is: "confirmations", payment: unconfirmed.payment } as const)
}
