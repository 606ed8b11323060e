/** A payment to whose address money came, as who collects it needs it. */
import { Array as Arr, Schema } from "effect"
import { maybe } from "../../Operations/inputFields.ts"

export const ReceivedPayment = Schema.Struct({
  payment: Schema.String,
  account: Schema.String,
  address: Schema.String,
  /** The n and the i of its path m/44'/60'/n'/0/i. */
  walletAccount: maybe(Schema.Number),
  index: Schema.Number,
  /** Or a reorg took some of its money, which is not decided yet. */
  isOpen: Schema.Boolean,
  /** What of its money on the chain waits, what is too small to be credited apart; base units. */
  held: Schema.Array(
    Schema.Struct({
      currency: Schema.String,
      amount: Schema.String,
      is: Schema.Literal("exception", "confirmations", "refund")
    })
  )
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

/** What is said of a payment whose money is left alone. */
export const awaitedText = {
  payment: "is open",
  exception: "has an open exception",
  confirmations: "has money that is not confirmed yet",
  refund: "has a refund that the chain does not show yet"
} as const

/** What has to stay at an address of a currency, and why: all while a payment is open; undefined where nothing does. */
export const heldAt = (payments: ReadonlyArray<ReceivedPayment>, currency: string) => {
  const open = payments.find(({ isOpen }) => isOpen)
  if (open !== undefined) return { is: "payment", payment: open.payment, amount: 1n << 256n } as const
  const held = payments.flatMap(({ held, payment }) =>
    held.flatMap((one) => (one.currency === currency ? [{ payment, ...one }] : []))
  )
  const first = held.find(({ is }) => is === "exception") ?? held[0]
  return first && { ...first, amount: held.reduce((sum, { amount }) => sum + BigInt(amount), 0n) }
}
