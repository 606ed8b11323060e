import { Schema } from "effect"
import type { PaymentException } from "./Exception.ts"
import { ExceptionObject } from "./ExceptionObject.ts"
import { type Payment, PaymentObject } from "./Payment.ts"
import { text } from "./textSchemas.ts"
import { toExceptionObject } from "./toExceptionObject.ts"

/** The exceptions that are shown with a payment. */
export interface ShownExceptions {
  /** The most pressing first. */
  readonly exceptions: ReadonlyArray<PaymentException>
  /** Whether there are more exceptions than these. */
  readonly more: boolean
}

/** A payment with its exceptions. */
export interface Accounted extends ShownExceptions {
  readonly payment: Payment
}

/** A payment, with the money that needs or needed a person when there is any: the same in answers and events. */
export const AccountedPayment = Schema.Struct({
  ...PaymentObject.fields,
  redirectUrl: Schema.optionalWith(
    text("Where the customer goes after paying, as given; only in answers that read or change a payment.", {
      format: "uri"
    }),
    { exact: true }
  ),
  exceptions: Schema.optionalWith(
    Schema.Array(ExceptionObject).annotations({
      description:
        "Money that came and does not fit, when there is any. What is open comes first, and of that `found_late` and `reorged`; at most 100, and 10 in an event."
    }),
    { exact: true }
  ),
  moreExceptions: Schema.optionalWith(
    Schema.Literal(true).annotations({
      description: "Set when there are more than are shown: `GET /v1/exceptions?payment=` lists them all."
    }),
    { exact: true }
  )
}).annotations({
  identifier: "AccountedPayment",
  description: "A payment, with the money that does not fit it. Fields that do not apply yet are absent, never null."
})
export type AccountedPayment = typeof AccountedPayment.Type

/** A payment with its exceptions as the merchant sees them. */
export const withExceptions = (payment: PaymentObject, { exceptions, more }: ShownExceptions): AccountedPayment => ({
  ...payment,
  ...(exceptions.length === 0 ? {} : { exceptions: exceptions.flatMap(toExceptionObject) }),
  ...(more ? { moreExceptions: true as const } : {})
})
