// Makes src/client/types.ts, which is not committed, from the OpenAPI document: the client says what the server says, and its
// declarations need no other package.
import { readdirSync, renameSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Unions with a name of their own, by where the document has them. */
const unions = {
  Chain: ({ Payment }) => Payment.properties.chain,
  PaymentCurrency: ({ Payment }) => Payment.properties.currency,
  Fiat: ({ LedgerRow }) => LedgerRow.properties.worthCurrency,
  QuoteCurrency: ({ Quote }) => Quote.properties.fromCurrency,
  PaymentStatus: ({ Payment }) => Payment.properties.status,
  FailureReason: ({ Payment }) => Payment.properties.failureReason,
  EventKind: ({ Delivery }) => Delivery.properties.kind,
  PaymentEventKind: ({ WebhookEvent }) => WebhookEvent.properties.event,
  InvoiceEventKind: ({ InvoiceEvent }) => InvoiceEvent.properties.event,
  InvoiceStatus: ({ Invoice }) => Invoice.properties.status,
  Language: ({ Invoice }) => Invoice.properties.language,
  ReceiptKind: ({ Receipt }) => Receipt.properties.kind,
  RefundStatus: ({ Refund }) => Refund.properties.status,
  ExceptionKind: ({ PaymentException }) => PaymentException.properties.kind,
  LedgerKind: ({ LedgerRow }) => LedgerRow.properties.kind,
  DeliveryStatus: ({ Delivery }) => Delivery.properties.status,
  DeliveryFilter: ({ ListDeliveries }) => ListDeliveries.properties.status,
  Metadata: ({ Payment }) => Payment.properties.metadata
}

/** `ListPayments` of `/v1/payments`: what a list is selected by, all of it optional. */
const listsOf = (paths) =>
  Object.entries(paths).flatMap(([path, { get }]) => {
    const selected = get?.parameters?.filter((parameter) => parameter.in === "query" && parameter.name) ?? []
    const name = path.replace("/v1/", "")
    if (!/^[a-z]+$/.test(name) || selected.length === 0) return []
    const properties = selected.map(({ description, name, schema }) => [name, { ...schema, description }])
    const of = {
      type: "object",
      description: "What a list is selected by.",
      properties: Object.fromEntries(properties)
    }
    return [[`List${name[0].toUpperCase()}${name.slice(1)}`, of]]
  })

const make = async () => {
  const { default: openapiTS, UNDEFINED, astToString, tsUnion } = await import("openapi-typescript")
  const { default: ts } = await import("typescript")
  await import("./typescript.mjs")
  const { makeOpenApi } = await import("../src/Documents.ts")
  const { statusOf } = await import("../src/Domain/ApiError.ts")
  const openApi = makeOpenApi({ publicUrl: "https://pay.example.com", limits: { perMinute: 1, perHour: 1 } })
  const { components, info, openapi, paths } = JSON.parse(openApi)

  const lists = Object.fromEntries(listsOf(paths))
  const described = Object.entries(components.schemas).filter(([name]) => !name.includes("."))
  const schemas = { ...Object.fromEntries(described), ...lists }
  for (const [name, find] of Object.entries(unions)) schemas[name] = find(schemas)
  const description = "The codes of error responses. Later versions of `/v1` may have more."
  schemas.ErrorCode = { type: "string", enum: Object.keys(statusOf), description }

  const bodies = Object.values(paths)
    .flatMap(Object.values)
    .map(({ requestBody }) => requestBody)
  const sent = new Set(
    bodies
      .flatMap((body) => body?.content["application/json"].schema.$ref?.split("/").at(-1) ?? [])
      .concat(Object.keys(lists))
  )
  const nodes = await openapiTS(
    { openapi, info, paths: {}, components: { schemas } },
    {
      immutable: true,
      rootTypes: true,
      rootTypesNoSchemaPrefix: true,
      defaultNonNullable: false,
      silent: true,
      // What a caller leaves out may be undefined: JSON leaves it out too. What is answered is absent, never undefined.
      transformProperty: ({ modifiers, name, questionToken, type }, _, { path }) =>
        questionToken && sent.has(path.split("/")[3])
          ? ts.factory.createPropertySignature(modifiers, name, questionToken, tsUnion([type, UNDEFINED]))
          : undefined
    }
  )
  const ofPaths = new Set(["paths", "webhooks", "$defs", "operations"])
  return astToString(nodes.filter(({ name }) => !ofPaths.has(name.text)))
}

/** What the OpenAPI document is made from, and how. */
const sources =
  /^(?:package-lock\.json|scripts\/clientTypes\.mjs|src\/(?:(?:.*\/)?Api\.ts|(?:Documents|Domain|lib)\b.*))$/
const timeOf = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Writes src/client/types.ts where it is missing or older than one of its sources. */
export const bringClientTypes = async (root) => {
  const files = ["package-lock.json", "scripts/clientTypes.mjs"].concat(
    readdirSync(join(root, "src"), { recursive: true }).map((path) => `src/${path.replaceAll("\\", "/")}`)
  )
  const made = join(root, "src/client/types.ts")
  const since = timeOf(made)
  if (files.every((path) => !sources.test(path) || timeOf(join(root, path)) < since)) return
  const text = await make()
  // Two scripts may do this at once.
  writeFileSync(`${made}-${process.pid}`, text)
  renameSync(`${made}-${process.pid}`, made)
}
