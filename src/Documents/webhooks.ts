import { EventKind } from "../Domain/Event.ts"
import { delaysInWords } from "../Domain/retrySchedule.ts"
import { exampleEvent } from "./examples.ts"
import { type JsonSchema, type OperationObject, type Parameter, refer } from "./openApi.ts"
import { eventTexts } from "./texts.ts"

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
  Record<Exclude<EventKind, "payment.exception">, { readonly status: string; readonly required: ReadonlyArray<string> }>
> = {
  "payment.created": { status: "pending", required: [] },
  "payment.detecting": { status: "detecting", required: ["amountReceived"] },
  "payment.updated": { status: "detecting", required: ["amountReceived"] },
  "payment.confirmed": { status: "confirmed", required: ["txHash", "confirmedAt"] },
  "payment.expired": { status: "expired", required: [] },
  "payment.failed": { status: "failed", required: ["failureReason"] }
}

const schemaOf = (kind: EventKind): JsonSchema => {
  if (kind === "payment.exception") {
    return {
      allOf: [refer("schemas", "WebhookEvent"), { properties: { event: { const: kind } }, required: ["exception"] }]
    }
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
export const webhookOperations = Object.fromEntries(
  EventKind.literals.map((kind) => [kind, { post: operationOf(kind) }])
)
