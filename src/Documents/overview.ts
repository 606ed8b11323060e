import type { Installation } from "./document.ts"

/** The introduction to the API, in the subset of Markdown that the page renders. */
export const apiOverview = ({ limits }: Installation): string =>
  `
Create a payment and get an address that is used for it only; tilld watches the chain and reports what arrives by signed
webhook, with retries.

Bodies are JSON. Amounts of payments are strings in the token's smallest unit: 25 USDC are \`"25000000"\`, 1 ETH is
\`"1000000000000000000"\`. Times are ISO 8601 in UTC. Ignore fields, error codes and event kinds that you do not know:
\`/v1\` grows. Whatever GET answers, HEAD answers too, without the body.

## Authentication

Every request to \`/v1\` carries the header \`X-API-Key\`. A \`svc_test_…\` key sees only payments on test networks, a
\`svc_live_…\` key only real ones, and each only those of its account. A key has some of the permissions
\`payments:read\`, \`payments:write\`, \`webhooks:read\`, \`webhooks:write\` and \`quotes:read\`; to write does not imply to
read. Keys are for servers: never give one to a browser or an app.

## Errors

Every error has one form. \`code\` is for your program, \`message\` for your developers: it says what was wrong and what to
do. \`details\` is present where a code has more to say, and \`requestId\` names the request in the operator's log. The one
exception is a 401, which has exactly \`code\` and \`message\`.

\`\`\`json
{
  "error": {
    "code": "VALIDATION_ERROR",
    "message": "The request is not valid: details lists every problem.",
    "details": [{ "path": "expiresIn", "message": "must be an integer from 60 to 86400, in seconds" }],
    "requestId": "req_q3LmJ8kPzQ1v6ySFhS9X0w"
  }
}
\`\`\`

A path that does not exist is a 404 \`NOT_FOUND\` without asking for a key.

## Rate limits

A key may make ${limits.perMinute.toLocaleString("en")} requests a minute and ${limits.perHour.toLocaleString("en")} an hour. Each window starts with the key's first request in it.
\`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\` (Unix seconds) on every answer to a key show the
window with fewer requests left. Beyond it comes 429 with \`Retry-After\` in seconds; refusals of that kind do not count.

## Idempotency

A POST whose answer was lost can be sent again without doing it twice: give it an \`Idempotency-Key\` of your own. For 24
hours the same body with the same key gets the first answer again, with \`Idempotent-Replayed: true\`; another body is a
422. Refusals are not kept: correct the request and use the same key.

## Webhooks

Events are sent as POST to the endpoints that you register, and to the \`webhookUrl\` of a payment. Answer with any 2xx
within 30 seconds; everything else is a failed attempt, and is tried again after 1 minute, 5 minutes, 30 minutes, 2 hours
and 24 hours. An event can come more than once: remember its \`id\`. Retries may arrive after later events: let
\`data.status\` decide, not the order of arrival.

\`X-Service-Signature\` is the HMAC-SHA256 of the body's bytes in lower-case hex, keyed with the whole secret, \`whsec_\`
included. Check it over the bytes as they came, before you parse them, and refuse what does not match. It signs no time, so
that a recorded request stays valid for ever: check \`webhook-signature\`, which signs the time too, or store event ids.

\`\`\`js
import { createHmac, timingSafeEqual } from "node:crypto"

const isFromTilld = (body, signature, secret) => {
  const expected = Buffer.from(createHmac("sha256", secret).update(body).digest("hex"))
  const given = Buffer.from(signature ?? "")
  return given.length === expected.length && timingSafeEqual(given, expected)
}
\`\`\`
`.trim()
