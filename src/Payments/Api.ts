import { HttpApiEndpoint } from "@effect/platform"
import { Effect, ParseResult, Predicate, Schema } from "effect"
import { CurrentKey, endpointsFor, keyedGroup, RequiredPermission } from "../Auth/Api.ts"
import { toChecksummed } from "../Domain/Address.ts"
import { BaseUnits } from "../Domain/Amount.ts"
import { withStatus } from "../Domain/ApiError.ts"
import { ChainName, type Mode } from "../Domain/Chain.ts"
import { Fiat, PaymentCurrency } from "../Domain/Currency.ts"
import { AccountedPayment } from "../Domain/Event.ts"
import { Metadata, MetadataChange } from "../Domain/Metadata.ts"
import {
  expiryBounds,
  expiryRule,
  PaymentObject,
  PaymentStatus,
  paymentDefaults,
  referenceOf
} from "../Domain/Payment.ts"
import { alternatives, count, inLog, maybe, must, text } from "../lib/annotations.ts"
import { choiceParameter, cursorParameter, limitParameter, momentParameter, pageSchema } from "../lib/parameters.ts"
import { HttpsUrl, maxUrlLength, parseUrl } from "../lib/Url.ts"

/**
 * The pattern of `merchantRef` for validators that read patterns without the `u` flag, where a character outside the basic
 * plane is a pair of surrogates. With either flag it matches the same references within that plane; beyond it, it does not
 * know the few that are invisible.
 */
const plainPattern =
  "^(?:[^\\u0000-\\u001F\\u007F-\\u009F\\u00AD\\u034F\\u0600-\\u0605\\u061C\\u06DD\\u070F\\u0890-\\u0891\\u08E2\\u115F-\\u1160\\u17B4-\\u17B5\\u180B-\\u180F\\u200B-\\u200F\\u2028-\\u202E\\u2060-\\u206F\\u3164\\uD800-\\uF8FF\\uFE00-\\uFE0F\\uFEFF\\uFFA0\\uFFF0-\\uFFFB]|[\\uD800-\\uDBFF][\\uDC00-\\uDFFF])+$"

/** Control characters, invisible ones and half characters would make two references look like one. */
const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

const invisibleIn = (text: unknown): string | undefined => {
  const code = typeof text === "string" ? invisible.exec(text)?.[0].codePointAt(0) : undefined
  const name = code?.toString(16).toUpperCase().padStart(4, "0")
  return name && `not have the character U+${name}, which cannot be seen: leave it out`
}

/** A reference of the merchant's. `about`: of what. */
export const merchantRefField = (about: string) =>
  must(
    "be a string of 1 to 128 printable characters",
    Schema.transform(
      Schema.String.pipe(Schema.filter((text) => !invisible.test(text))),
      Schema.String.pipe(Schema.filter((text) => /^.{1,128}$/u.test(text))),
      { strict: true, decode: referenceOf, encode: (text) => text }
    ),
    {
      about: `${about}, in NFC: blanks around it do not count, and each other one is a plain one`,
      json: { type: "string", pattern: plainPattern, minLength: 1, maxLength: 128 },
      log: "shown",
      wrong: invisibleIn
    }
  )

const Amount = Schema.transform(
  must(
    'be a string of digits in the smallest unit of the token, at most 2^256 - 1, without sign or leading zero: 25 USDC are "25000000"',
    BaseUnits,
    { about: "What is to be paid" }
  ),
  Schema.BigIntFromSelf,
  { strict: true, decode: BigInt, encode: String }
).annotations(inLog("shown"))

const isFiat = Schema.is(Fiat)

export const PayableField = must(
  `be ${alternatives(PaymentCurrency.literals)}; MATIC is quoted, not taken`,
  PaymentCurrency,
  {
    about: "The token to be paid in",
    log: "shown",
    wrong: (value) =>
      isFiat(value) ? `be a token: POST /v1/quotes converts ${value}, and its quoteId locks the rate` : undefined
  }
)
export const ChainToPayOn = must(`be ${alternatives(ChainName.literals)}`, ChainName, {
  about: "The chain to be paid on",
  log: "shown"
})

export const ExpiresInField = must(expiryRule, Schema.Number.pipe(Schema.int(), Schema.between(...expiryBounds)), {
  about: "How long there is to pay",
  byDefault: paymentDefaults.expiresIn,
  log: "shown"
})

const isLocalhost = (url: URL): boolean =>
  url.hostname === "localhost" || url.hostname.endsWith(".localhost") || ["127.0.0.1", "[::1]"].includes(url.hostname)

/** Where a customer may be led after paying. */
export const isRedirectUrl = (text: string, mode: Mode): boolean => {
  const url = parseUrl(text)
  if (url === undefined) return false
  return url.protocol === "https:" || (url.protocol === "http:" && mode === "test" && isLocalhost(url))
}

export const RedirectUrlField = must(
  `be an https URL of at most ${maxUrlLength} characters, without user info; http is possible on localhost with a test key`,
  Schema.String.pipe(Schema.filterEffect((text) => Effect.map(CurrentKey, ({ mode }) => isRedirectUrl(text, mode)))),
  { about: "Where the customer goes after paying", json: { format: "uri", maxLength: maxUrlLength }, log: "hidden" }
)

export const WebhookUrlField = HttpsUrl.annotations({
  jsonSchema: {
    type: "string",
    format: "uri",
    maxLength: maxUrlLength,
    description:
      "Gets every event that reports a new status of this payment, signed with the account's default secret, or with the endpoint's own where it is a registered one. Must be an https URL without user info, to a public address."
  }
})

const QuoteId = must("be the id of a quote", Schema.String, {
  about: "Locks the quote's rate for this payment",
  // The schema takes any text.
  log: "hidden"
})

/** The input of `POST /v1/payments`. */
export const CreatePaymentBody = Schema.Struct({
  merchantRef: merchantRefField("Your own reference, once for ever in an account and mode"),
  amount: Amount,
  currency: PayableField,
  chain: ChainToPayOn,
  webhookUrl: maybe(WebhookUrlField),
  redirectUrl: maybe(RedirectUrlField),
  expiresIn: maybe(ExpiresInField),
  metadata: maybe(Metadata),
  quoteId: maybe(QuoteId)
}).annotations({ identifier: "CreatePayment", description: "What is to be paid. Unknown fields are refused." })

/** In EIP-55 form once decoded. */
const Address = must(
  "be an address: 0x and 40 hexadecimal digits, all in one case or with their EIP-55 checksum",
  Schema.transformOrFail(Schema.String, Schema.String, {
    strict: true,
    decode: (text, _, ast) => {
      const address = toChecksummed(text)
      return address === undefined ? ParseResult.fail(new ParseResult.Type(ast, text)) : ParseResult.succeed(address)
    },
    encode: ParseResult.succeed
  }),
  { about: "Only the payment with this address", json: { type: "string", pattern: "^0x[0-9a-fA-F]{40}$" } }
)

/** In lower case once decoded. */
export const plainAddress = (about: string) =>
  must(
    "be an address: 0x and 40 hexadecimal digits",
    Schema.String.pipe(Schema.pattern(/^0x[0-9a-fA-F]{40}$/), Schema.compose(Schema.Lowercase)),
    { about, json: { type: "string", pattern: "^0x[0-9a-fA-F]{40}$" }, log: "hidden" }
  )

const mostTerms = 10

const isOfTerms = (value: unknown): value is Readonly<Record<string, string>> =>
  Predicate.isReadonlyRecord(value) &&
  Object.values(value).every(Predicate.isString) &&
  Object.keys(value).length <= mostTerms

const MetadataTerms = must(
  `be metadata[KEY]=VALUE, with ${mostTerms} different keys at most`,
  // `HttpApi` asks for a parameter that is written as one text; `routes.ts` gathers these.
  Schema.declare(isOfTerms) as Schema.Schema.AnyNoContext as Schema.Schema<Readonly<Record<string, string>>, string>,
  {
    about:
      "Only payments with these texts of up to 100 characters, numbers or booleans in the first level of their metadata, in any case of letters",
    json: { type: "object", additionalProperties: { type: "string" }, maxProperties: mostTerms }
  }
)

const Search = must("be given once, and not be empty", Schema.String.pipe(Schema.pattern(/\S/)), {
  about:
    "Only payments that this names: the id of a payment, a quote, an exception or a refund, the address of a checkout page or its token, a receiving address, a sender, a transaction, a reference, or a whole value in the metadata; the first of these that there are any of"
})

/** In lower case once decoded. */
export const transactionHash = (about: string) =>
  must(
    "be a transaction's hash: 0x and 64 hexadecimal digits",
    Schema.String.pipe(Schema.pattern(/^0x[0-9a-fA-F]{64}$/), Schema.compose(Schema.Lowercase)),
    // It has the form of a private key.
    { about, json: { type: "string", pattern: "^0x[0-9a-fA-F]{64}$" }, log: "hidden" }
  )

/** The query of `GET /v1/payments`. */
export const ListPaymentsQuery = Schema.Struct({
  status: choiceParameter(PaymentStatus, "Only payments in this status; `pending` does not include `detecting`"),
  chain: choiceParameter(ChainName, "Only payments on this chain"),
  merchantRef: maybe(merchantRefField("Only the payment with this reference")),
  address: maybe(Address),
  txHash: maybe(
    transactionHash(
      "Only payments that this transaction sent something to, even too late, of another token, or in a block that a reorg has removed since"
    )
  ),
  from: maybe(plainAddress("Only payments that this address sent something to")),
  metadata: maybe(MetadataTerms),
  search: maybe(Search),
  createdAfter: momentParameter("Only payments created at this time or later"),
  createdBefore: momentParameter("Only payments created before this time"),
  limit: limitParameter("Payments"),
  cursor: cursorParameter
})

/**
 * The input of `POST /v1/payments/:id/cancel`: none. A struct without fields would accept anything, including other
 * fields.
 */
export const CancelPaymentBody = Schema.Record({
  key: Schema.String,
  value: must("not be there: this endpoint takes no fields", Schema.Never)
}).annotations({
  identifier: "CancelPayment",
  jsonSchema: { type: "object", properties: {}, description: "An object without fields, or no body at all." }
})

/** The input of `PATCH /v1/payments/:id`. */
export const ChangePaymentBody = Schema.Struct({ metadata: MetadataChange }).annotations({
  identifier: "ChangePayment",
  description: "What of a payment is changed. Unknown fields are refused."
})

export const PaymentPage = pageSchema("PaymentPage", "payments", AccountedPayment)

const Payable = Schema.Struct({
  currency: PaymentCurrency.annotations({ description: "Symbol of the token." }),
  chain: ChainName.annotations({ description: "The chain to pay on." }),
  chainId: count("Id of the chain (EIP-155), as wallets know it."),
  decimals: count("Decimals of the token: 6 if a million base units are one."),
  native: Schema.Boolean.annotations({ description: "Whether it is the chain's own coin, which has no contract." }),
  contract: maybe(text("Contract of the token, in EIP-55 form.", { pattern: "^0x[0-9a-fA-F]{40}$" }))
}).annotations({ identifier: "PayableCurrency", description: "A token that a payment can be made in, on one chain." })

/** What the configuration offers in the key's mode. */
export const CurrencyList = Schema.Struct({
  data: Schema.Array(Payable).annotations({ description: "By chain, in the order of the configuration." })
}).annotations({ identifier: "CurrencyList" })

const { get, patch, post } = endpointsFor("payments:read", "payments:write")

const Path = Schema.Struct({ id: text("Identifier of the payment: `pay_…`.") })

export const PaymentsApi = keyedGroup("payments")
  .add(
    post(
      "create",
      "/v1/payments",
      "DUPLICATE_MERCHANT_REF",
      "QUOTE_ALREADY_USED",
      "QUOTE_EXPIRED",
      "QUOTE_MISMATCH",
      "QUOTE_NOT_FOUND",
      "WALLET_NOT_CONFIGURED",
      "QUOTA_EXCEEDED"
    )
      .setPayload(CreatePaymentBody)
      .addSuccess(withStatus(201, PaymentObject))
  )
  .add(get("get", "/v1/payments/:id", "NOT_FOUND").setPath(Path).addSuccess(AccountedPayment))
  .add(get("list", "/v1/payments", "INVALID_CURSOR").setUrlParams(ListPaymentsQuery).addSuccess(PaymentPage))
  .add(HttpApiEndpoint.get("currencies", "/v1/currencies").addSuccess(CurrencyList).annotate(RequiredPermission, []))
  .add(
    patch("change", "/v1/payments/:id", "NOT_FOUND", "QUOTA_EXCEEDED")
      .setPath(Path)
      .setPayload(ChangePaymentBody)
      .addSuccess(AccountedPayment)
  )
  .add(
    post("cancel", "/v1/payments/:id/cancel", "NOT_FOUND", "PAYMENT_NOT_PENDING")
      .setPath(Path)
      .setPayload(CancelPaymentBody)
      .addSuccess(AccountedPayment)
  )
