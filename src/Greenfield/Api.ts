/** The bodies of this API, as the plugins send them: unknown fields are ignored. */
import { Schema } from "effect"
import { formatUnits, parseUnits } from "viem"
import { maybe, must } from "../lib/annotations.ts"

/** A decimal above zero, of digits, with at most 15 before the point; zeros at the end of its decimals do not count. */
export const Decimal = Schema.transform(
  must(
    'be a decimal above 0, a string or a number such as "25.00", with at most 15 digits before the point',
    Schema.Union(Schema.String, Schema.Number).pipe(
      Schema.filter((amount) => /^[0-9]{1,15}(\.[0-9]{1,20})?$/.test(String(amount)) && /[1-9]/.test(String(amount)))
    )
  ),
  Schema.String,
  {
    strict: true,
    decode: (amount) => formatUnits(parseUnits(String(amount), 20), 20),
    encode: (amount) => amount
  }
)

export const CurrencyField = must("be a currency such as EUR", Schema.String.pipe(Schema.maxLength(20)))

export const MetadataField = must("be an object", Schema.Record({ key: Schema.String, value: Schema.Unknown }))

const Checkout = Schema.Struct({
  paymentMethods: maybe(
    must("be a list of at most 100 payment methods", Schema.Array(Schema.String).pipe(Schema.maxItems(100)))
  ),
  expirationMinutes: maybe(must("be a number from 1 to 1440", Schema.Number.pipe(Schema.between(1, 1_440)))),
  redirectURL: maybe(must("be a URL", Schema.String)),
  defaultLanguage: maybe(must("be a language", Schema.String.pipe(Schema.maxLength(35)))),
  // Given back as they came: confirmations and tolerance are the operator's.
  ...{ redirectAutomatically: maybe(Schema.Unknown), speedPolicy: maybe(Schema.Unknown) },
  ...{ paymentTolerance: maybe(Schema.Unknown), monitoringMinutes: maybe(Schema.Unknown) }
})

export const PluginInvoiceBody = Schema.Struct({
  amount: maybe(Decimal),
  currency: maybe(CurrencyField),
  metadata: maybe(MetadataField),
  checkout: maybe(Checkout),
  receipt: maybe(MetadataField)
})

export const MetadataBody = Schema.Struct({ metadata: MetadataField })

export const StatusBody = Schema.Struct({
  status: must("be Settled or Invalid", Schema.Literal("Settled", "Invalid"))
})

const Description = must("be a text of at most 2000 characters", Schema.String.pipe(Schema.maxLength(2_000)))

export const PullPaymentBody = Schema.Struct({
  name: must("be a text of 1 to 200 characters", Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200))),
  description: maybe(Description),
  amount: Decimal,
  currency: maybe(CurrencyField)
})

export const RefundInvoiceBody = Schema.Struct({
  name: maybe(Description),
  description: maybe(Description),
  refundVariant: must(
    "be RateThen, CurrentRate, Fiat, OverpaidAmount or Custom",
    Schema.Literal("RateThen", "CurrentRate", "Fiat", "OverpaidAmount", "Custom")
  ),
  customAmount: maybe(Decimal),
  customCurrency: maybe(CurrencyField)
})
