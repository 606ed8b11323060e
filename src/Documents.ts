/** The API as OpenAPI 3.1: made of the definition that the server uses, with texts and examples. */
import { JSONSchema, Schema, type SchemaAST } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { exampleEvent } from "./Documents/examples.ts"
import {
  type JsonSchema,
  nameOf,
  type OpenApiDocument,
  type OperationObject,
  type Parameter,
  refer
} from "./Documents/openApi.ts"
import { headers, operations, sharedResponses, type ToJsonSchema } from "./Documents/operations.ts"
import { eventTexts, groupTexts } from "./Documents/texts.ts"
import { errorBody, errorCodes, unauthorizedBody } from "./Domain/ApiError.ts"
import { furtherFiat, PaymentCurrency, standardFiat, tokenChains } from "./Domain/Currency.ts"
import { delaysInWords } from "./Domain/DeliveryObject.ts"
import { EventKind, isStatusEventKind, type StatusEventKind, WebhookEvent } from "./Domain/Event.ts"
import { InvoiceEvent, InvoiceEventKind } from "./Domain/Invoice.ts"
import { expiryRule } from "./Domain/Payment.ts"

const inCode = (words: ReadonlyArray<string>): string => words.map((word) => `\`${word}\``).join(", ")

/** What payments take on which chains, and what is only quoted: a list in Markdown. */
const currencies = [
  ...PaymentCurrency.literals.map((token) => `- \`${token}\` on ${inCode(tokenChains[token])}`),
  `- Quoted, not taken by payments: \`MATIC\` on \`polygon\`, and ${inCode(standardFiat)}`,
  `- Quoted where the operator turned them on: ${inCode(furtherFiat)}`
].join("\n")

/** The introduction to the API, in the subset of Markdown that the page renders. */
const apiOverview = ({ limits }: Installation): string =>
  `
Create a payment and get an address used for it only. tilld watches the chain and reports what arrives by signed webhook,
with retries.

## Bodies

Bodies are JSON. Amounts of payments are strings in the token's smallest unit: 25 USDC are \`"25000000"\`, 1 ETH is
\`"1000000000000000000"\`. Times are ISO 8601 in UTC. Ignore fields, error codes and event kinds that you do not know:
\`/v1\` grows. HEAD works wherever GET does, without the body.

## Currencies

${currencies}

## Authentication

Every request to \`/v1\` carries the header \`X-API-Key\`. A \`svc_test_…\` key sees only payments on test networks, a
\`svc_live_…\` key only real ones, and each only those of its account. A key has some of the permissions
\`payments:read\`, \`payments:write\`, \`webhooks:read\`, \`webhooks:write\`, \`quotes:read\`, \`exceptions:read\` and
\`exceptions:write\`; write does not imply read.
Keys are for servers: never give one to a browser or an app. The operator can limit a key to your servers' addresses, and
roll it: a new key takes its place, and during an overlap both work. An \`Idempotency-Key\` holds across the two.

## Errors

Every error has one form. \`code\` is for your program, \`message\` for your developers: it says what was wrong and what to
do. \`details\` is present if a code has more to say, and \`requestId\` names the request in the operator's log. The one
exception is a 401, which has exactly \`code\` and \`message\`.

\`\`\`json
{
  "error": {
    "code": "VALIDATION_ERROR",
    "message": "The request is not valid: details lists every problem.",
    "details": [{ "path": "expiresIn", "message": "must ${expiryRule}" }],
    "requestId": "req_q3LmJ8kPzQ1v6ySFhS9X0w"
  }
}
\`\`\`

A path that does not exist is a 404 \`NOT_FOUND\`, with or without a key.

## Rate limits

A key may make ${limits.perMinute.toLocaleString("en")} requests a minute and ${limits.perHour.toLocaleString("en")} an hour, unless the operator has given it
other limits; all keys of an account in a mode together ten times that, or what the operator says. Each window starts with the first request in it.
\`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\` (Unix seconds) on every response to a key show the
window with the fewest requests left, of the key or its account. Beyond a limit comes 429, which says whose it is,
with \`Retry-After\` in seconds; these refusals do not count.

## Idempotency

A POST or PATCH whose response was lost can be repeated without being executed twice: send an \`Idempotency-Key\` of your own. For
24 hours the same body with the same key gets the first response again, with \`Idempotent-Replayed: true\`; another body
is a 422. Refusals are not stored: correct the request and use the same key.

## Lists

A list is newest first and comes in pages. \`limit\` is the length of a page, and \`cursor\` in the answer leads to the next one:
send it as \`cursor\`, with the same filters, until it is null. Pages stay stable while objects are created.

## Webhooks

Events are sent as POST to the endpoints that you register, and to the \`webhookUrl\` of a payment. Respond with any
2xx within 30 seconds; everything else is a failed attempt, and is retried after ${delaysInWords}. An event can arrive more than once: store its \`id\`. Retries may arrive after later events: rely on
\`data.status\`, not on the order of arrival.

\`X-Service-Signature\` is the HMAC-SHA256 of the body's bytes in lower-case hex, keyed with the whole secret, \`whsec_\`
included. Verify it over the bytes as received, before you parse them, and refuse a request that does not match. It
covers no time, so a recorded request stays valid for ever: verify \`webhook-signature\`, which covers the time too, or
store event ids.

\`\`\`js
import { createHmac, timingSafeEqual } from "node:crypto"

const isFromTilld = (body, signature, secret) => {
  const expected = Buffer.from(createHmac("sha256", secret).update(body).digest("hex"))
  const given = Buffer.from(signature ?? "")
  return given.length === expected.length && timingSafeEqual(given, expected)
}
\`\`\`
`.trim()

const header = (
  name: string,
  required: boolean,
  description: string,
  schema: JsonSchema,
  example: string
): Parameter => ({
  name,
  in: "header",
  required,
  description,
  schema: { type: "string", ...schema },
  example
})

const signatureHeaders: ReadonlyArray<Parameter> = [
  header(
    "X-Service-Signature",
    true,
    "HMAC-SHA256 of the body's bytes in lower-case hex, keyed with the UTF-8 bytes of the whole secret, `whsec_` included. Compare in constant time.",
    { pattern: "^[0-9a-f]{64}$" },
    "5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"
  ),
  header("webhook-id", true, "The event's `id`.", { pattern: "^evt_" }, "evt_AZwT7J4A3Jm2Xc6nVb0sQw9eRt7yUi"),
  header("webhook-timestamp", true, "Time of the attempt, in Unix seconds.", { pattern: "^[0-9]+$" }, "1769860800"),
  header(
    "webhook-signature",
    false,
    "The signature of Standard Webhooks, present if the part of the secret after `whsec_` is the base64 of 24 to 64 bytes.",
    { pattern: "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$" },
    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
  )
]

/** What `data` has in each kind of event that reports a payment's state, beyond a payment. */
const narrowed: Readonly<
  Record<StatusEventKind, { readonly status: string; readonly required: ReadonlyArray<string> }>
> = {
  "payment.created": { status: "pending", required: [] },
  "payment.detecting": { status: "detecting", required: ["amountReceived"] },
  "payment.confirmed": { status: "confirmed", required: ["txHash", "confirmedAt"] },
  "payment.expired": { status: "expired", required: [] },
  "payment.failed": { status: "failed", required: ["failureReason"] }
}

const isOfInvoice = Schema.is(InvoiceEventKind)

const schemaOf = (kind: EventKind): JsonSchema => {
  if (isOfInvoice(kind)) {
    return { allOf: [refer("schemas", "InvoiceEvent"), { properties: { event: { const: kind } } }] }
  }
  if (!isStatusEventKind(kind)) {
    const required = kind === "payment.exception" ? ["exception"] : kind === "refund.final" ? ["refund"] : []
    return { allOf: [refer("schemas", "WebhookEvent"), { properties: { event: { const: kind } }, required }] }
  }
  const { required, status } = narrowed[kind]
  const there = Object.fromEntries(required.map((name) => [name, {}]))
  const data: JsonSchema = { properties: { status: { const: status }, ...there }, required: ["status", ...required] }
  return {
    allOf: [refer("schemas", "WebhookEvent"), { properties: { event: { const: kind }, data } }]
  }
}

const operationOf = (kind: EventKind): OperationObject => ({
  operationId: kind,
  tags: ["events"],
  ...eventTexts[kind],
  security: [],
  parameters: signatureHeaders,
  requestBody: {
    required: true,
    content: {
      "application/json": {
        schema: schemaOf(kind),
        examples: { example: { summary: kind, value: exampleEvent(kind) } }
      }
    }
  },
  responses: {
    "2XX": { description: "Received, if within 30 seconds. Only the status counts; the body is ignored." },
    default: {
      description: `A failed attempt, like a redirect or no response. Retries come ${delaysInWords} after the previous failed attempt.`
    }
  }
})

/** The webhooks that tilld sends, by event kind. */
const webhookOperations = Object.fromEntries(EventKind.literals.map((kind) => [kind, { post: operationOf(kind) }]))

/** The settings of an installation that the documents mention. */
export interface Installation {
  /** Without a slash at its end. */
  readonly publicUrl: string
  /** Requests that a key may make. */
  readonly limits: { readonly perMinute: number; readonly perHour: number }
}

const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "A value of your choice, 1 to 255 printable ASCII characters. For 24 hours the same request with the same key gets the first response again, without being executed again; refusals are not stored.",
  schema: { type: "string", pattern: "^[\\x20-\\x7e]{1,255}$", minLength: 1, maxLength: 255 },
  example: "order-1-attempt-1"
}

const ifNoneMatch: Parameter = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "The `ETag` of your copy, or several, or `*`: if one is current, the response is 304 without a body.",
  schema: { type: "string" },
  example: '"q3LmJ8kPzQ1v6ySFhS9X0w"'
}

/** A schema without the library's own keywords, and open: responses may get new fields, and metadata has any. */
const tidy = (schema: JsonSchema): JsonSchema => {
  const { additionalProperties, title: _, ...rest } = schema as JsonSchema & { readonly title?: string }
  const { anyOf, items, properties } = rest
  return {
    ...rest,
    ...(rest.type === "object" && !properties && { additionalProperties: additionalProperties || true }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, tidy(property)]))
    }),
    ...(items && { items: tidy(items) }),
    ...(anyOf && { anyOf: anyOf.map(tidy) })
  }
}

/** The names of request schemas: unknown fields are refused there. */
const requestSchemas = (paths: OpenApiDocument["paths"]): ReadonlySet<string> =>
  new Set(
    Object.values(paths)
      .flatMap((item) => Object.values(item))
      .flatMap(({ requestBody }) => Object.values(requestBody?.content ?? {}))
      .map(({ schema }) => nameOf(schema.$ref ?? ""))
  )

/** The OpenAPI document, generated from the definition that the server uses. */
export const makeDocument = (installation: Installation): OpenApiDocument => {
  const definitions: Record<string, JSONSchema.JsonSchema7> = {}
  const toJsonSchema: ToJsonSchema = (ast: SchemaAST.AST) =>
    tidy(
      JSONSchema.fromAST(ast, {
        definitions,
        definitionPath: "#/components/schemas/",
        target: "openApi3.1"
      }) as JsonSchema
    )
  const paths = operations(toJsonSchema)
  toJsonSchema(WebhookEvent.ast)
  toJsonSchema(InvoiceEvent.ast)
  for (const code of errorCodes) toJsonSchema((code === "UNAUTHORIZED" ? unauthorizedBody : errorBody(code)).ast)
  const closed = requestSchemas(paths)
  const schemas = Object.entries(definitions).map(([name, schema]) => {
    return [name, { ...tidy(schema as JsonSchema), ...(closed.has(name) && { additionalProperties: false }) }] as const
  })
  return {
    openapi: "3.1.1",
    info: {
      title: "tilld",
      summary: "Crypto payments on your own machine.",
      description: apiOverview(installation),
      version: packageJson.version,
      license: { name: "MIT", identifier: "MIT" }
    },
    externalDocs: { url: `${installation.publicUrl}/guide/integrate`, description: "The guide" },
    servers: [{ url: installation.publicUrl, description: "This installation" }],
    tags: Object.entries(groupTexts).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: webhookOperations,
    components: {
      schemas: Object.fromEntries(schemas),
      responses: sharedResponses,
      parameters: { "Idempotency-Key": idempotencyKey, "If-None-Match": ifNoneMatch },
      headers,
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          name: "X-API-Key",
          in: "header",
          description:
            "A key that `tilld keys create` printed: `svc_test_…` for test networks, `svc_live_…` for real money. The names in an operation's requirement are the permissions that the key needs. For servers only: never give it to a browser or an app."
        }
      }
    }
  }
}

/** OpenAPI 3.1, as JSON. */
export const makeOpenApi = (installation: Installation): string => JSON.stringify(makeDocument(installation))
