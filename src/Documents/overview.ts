import { expiryRule } from "../Domain/CreatePayment.ts"
import { Fiat, PaymentCurrency, tokenChains } from "../Domain/Currency.ts"
import { delaysInWords } from "../Domain/retrySchedule.ts"
import type { Installation } from "./document.ts"

const inCode = (words: ReadonlyArray<string>): string => words.map((word) => `\`${word}\``).join(", ")

/** What payments take on which chains, and what is only quoted: a list in Markdown. */
const currencies = [
  ...PaymentCurrency.literals.map((token) => `- \`${token}\` on ${inCode(tokenChains[token])}`),
  `- Quoted, not taken by payments: \`MATIC\` on \`polygon\`, and ${inCode(Fiat.literals)}`
].join("\n")

/** The introduction to the API, in the subset of Markdown that the page renders. */
export const apiOverview = ({ limits }: Installation): string =>
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
