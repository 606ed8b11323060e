// The types of tilld/client, from the OpenAPI document: the client needs no other package, and says what the server says.
import { spawnSync } from "node:child_process"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import "./typescript.mjs"

const require = createRequire(import.meta.url)

/** Unions with a name of their own, by where the document has them. */
const unions = {
  Chain: ({ schemas }) => schemas.Payment.properties.chain,
  PaymentCurrency: ({ schemas }) => schemas.Payment.properties.currency,
  Fiat: ({ schemas }) => schemas.LedgerRow.properties.worthCurrency,
  QuoteCurrency: ({ schemas }) => schemas.Quote.properties.fromCurrency,
  PaymentStatus: ({ schemas }) => schemas.Payment.properties.status,
  FailureReason: ({ schemas }) => schemas.Payment.properties.failureReason,
  EventKind: ({ schemas }) => schemas.Delivery.properties.kind,
  PaymentEventKind: ({ schemas }) => schemas.WebhookEvent.properties.event,
  InvoiceEventKind: ({ schemas }) => schemas.InvoiceEvent.properties.event,
  InvoiceStatus: ({ schemas }) => schemas.Invoice.properties.status,
  Language: ({ schemas }) => schemas.Invoice.properties.language,
  ReceiptKind: ({ schemas }) => schemas.Receipt.properties.kind,
  RefundStatus: ({ schemas }) => schemas.Refund.properties.status,
  ExceptionKind: ({ schemas }) => schemas.PaymentException.properties.kind,
  LedgerKind: ({ schemas }) => schemas.LedgerRow.properties.kind,
  DeliveryStatus: ({ schemas }) => schemas.Delivery.properties.status,
  DeliveryFilter: ({ queries }) => queries.ListDeliveries.find(({ name }) => name === "status").schema
}
const responses = [
  ...["Payment", "AccountedPayment", "PaymentPage", "Refund", "RefundPage", "RefundedPart"],
  ...["Receipt", "AcceptedMoney", "Price", "Invoice", "InvoicePage", "InvoiceEvent"],
  ...["PaymentException", "ExceptionPage", "Quote"],
  ...["LedgerRow", "LedgerPage"],
  ...["PayableCurrency", "CurrencyList"],
  ...["WebhookEndpoint", "WebhookEndpointList", "DeletedWebhookEndpoint", "DeliveryAttempt", "Delivery"],
  ...["DeliveryWithAttempts", "DeliveryPage", "Redelivered", "RedeliveredSome", "WebhookEvent"]
]
const bases = { AccountedPayment: "Payment", DeliveryWithAttempts: "Delivery" }
const requests = [
  ...["PriceOfInvoice", "CreateInvoice", "Choose"],
  ...["CreatePayment", "RefundPayment", "NameRefund", "ResolveException", "CreateQuote", "CreateWebhookEndpoint"],
  ...["ChangePayment", "ChangeWebhookEndpoint", "Redeliver", "RedeliverSome"]
]

const comment = (text) => (text === undefined ? [] : [`/** ${text.replaceAll("*/", "* /")} */`])

/** The text of src/client/types.ts. */
export const clientTypes = async (root) => {
  const { makeOpenApi } = await import("../src/Documents.ts")
  const openApi = makeOpenApi({ publicUrl: "https://pay.example.com", limits: { perMinute: 1, perHour: 1 } })
  const { statusOf } = await import("../src/Domain/ApiError.ts")
  const { components, paths } = JSON.parse(openApi)
  const { schemas } = components
  const queryOf = (path) => paths[path].get.parameters.filter((one) => one.in === "query")
  const queries = {
    ListPayments: queryOf("/v1/payments"),
    ListInvoices: queryOf("/v1/invoices"),
    ListExceptions: queryOf("/v1/exceptions"),
    ListRefunds: queryOf("/v1/refunds"),
    ListLedger: queryOf("/v1/ledger"),
    ListDeliveries: queryOf("/v1/deliveries")
  }
  const fiat = unions.Fiat({ schemas }).enum
  const literals = (values) =>
    values.length > fiat.length && fiat.every((one) => values.includes(one))
      ? `Fiat | ${literals(values.filter((value) => !fiat.includes(value)))}`
      : values.map((value) => JSON.stringify(value)).join(" | ")
  const named = new Map(
    Object.entries(unions).map(([name, find]) => [find({ schemas, queries }).enum.toSorted().join(), name])
  )
  const typeOf = ({ $ref, additionalProperties, anyOf, enum: values, items, properties, required = [], type }) => {
    if ($ref !== undefined) return $ref.split("/").at(-1)
    if (anyOf !== undefined) return anyOf.map(typeOf).join(" | ")
    if (values !== undefined) return named.get(values.toSorted().join()) ?? literals(values)
    if (type === "array") return `ReadonlyArray<${typeOf(items)}>`
    if (properties !== undefined) return `{ ${fieldsOf(properties, required).join("\n")} }`
    if (additionalProperties?.type) return `Readonly<Record<string, ${typeOf(additionalProperties)}>>`
    if (type === "object") return "Metadata"
    return type === "integer" ? "number" : type
  }
  const field = (name, schema, isRequired, also = "") => [
    ...comment(schema.description),
    `readonly ${name}${isRequired ? "" : "?"}: ${typeOf(schema)}${isRequired ? "" : also}`
  ]
  const fieldsOf = (properties, required, also) =>
    Object.entries(properties).flatMap(([name, schema]) => field(name, schema, required.includes(name), also))
  const declared = (name, description, fields, base) => [
    ...comment(description),
    `export interface ${name}${base === undefined ? "" : ` extends ${base}`} {`,
    ...fields,
    "}",
    ""
  ]
  const interfaces = [...responses, ...requests].flatMap((name) => {
    const { description, properties, required } = schemas[name]
    const base = bases[name]
    const own = Object.entries(properties).filter(([key]) => schemas[base]?.properties[key] === undefined)
    const also = requests.includes(name) ? " | undefined" : ""
    return declared(name, description, fieldsOf(Object.fromEntries(own), required ?? [], also), base)
  })
  const lists = Object.entries(queries).flatMap(([name, parameters]) =>
    declared(
      name,
      "What a list is selected by.",
      parameters.flatMap(({ description, name, schema }) =>
        field(name, { ...schema, description }, false, " | undefined")
      )
    )
  )
  const text = [
    "// Generated from the schemas of the server: npm run docs. The package needs no other package for its types.",
    "",
    ...Object.entries(unions).flatMap(([name, find]) => [
      `export type ${name} = ${literals(find({ schemas, queries }).enum)}`,
      ""
    ]),
    "/** Your own data, as it was given. */",
    "export type Metadata = Readonly<Record<string, unknown>>",
    "",
    ...interfaces,
    ...lists,
    "/** The codes of error responses. Later versions of `/v1` may have more. */",
    `export type ErrorCode = ${literals(Object.keys(statusOf))}`
  ].join("\n")
  const biome = join(dirname(require.resolve("@biomejs/biome/package.json")), "bin/biome")
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    [biome, "format", "--stdin-file-path=src/client/types.ts"],
    {
      cwd: root,
      encoding: "utf8",
      input: text
    }
  )
  if (status !== 0) throw new Error(stderr)
  return stdout
}
