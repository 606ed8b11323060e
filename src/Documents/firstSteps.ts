import type { Installation } from "./document.ts"

/** The first steps with curl, in the subset of Markdown that the pages render. `test/docs.test.ts` runs its commands. */
export const firstSteps = ({ publicUrl }: Pick<Installation, "publicUrl">): string =>
  `
## Make a key

In the portal, open API keys in the test mode and make a key; or make one on the server. \`npm run sandbox\` prints one.

\`\`\`sh
export TILLD=${publicUrl}
export KEY=$(tilld keys create --mode test --name first-steps)
\`\`\`

## Create a payment

25 USDC on the test network of base. Amounts are in base units: USDC has 6 decimals.

\`\`\`sh
curl -sS $TILLD/v1/payments -H "X-API-Key: $KEY" -H 'Content-Type: application/json' \\
  -d '{"merchantRef":"first-steps-1","amount":"25000000","currency":"USDC","chain":"base"}'
\`\`\`

## Send the customer to its page

The answer has \`checkoutUrl\`: open it in a browser. The page shows the amount, the network, the address and a QR code,
and follows the payment. In the sandbox, \`tilld sandbox pay\` with the payment's \`id\` pays it.

## Read the payment

\`GET /v1/payments/{id}\` returns it by its id, and the list finds it by your reference. \`status\` goes from \`pending\` through \`detecting\` to
\`confirmed\`.

\`\`\`sh
curl -sS "$TILLD/v1/payments?merchantRef=first-steps-1" -H "X-API-Key: $KEY"
\`\`\`

## Receive a webhook

Register an https endpoint of your server, with a secret of your choice. \`tilld listen --forward-to\` sends the events to a
server on your own machine.

\`\`\`sh
export SECRET=whsec_$(openssl rand -base64 32)
curl -sS $TILLD/v1/webhooks -H "X-API-Key: $KEY" -H 'Content-Type: application/json' \\
  -d "{\\"url\\":\\"https://shop.example.com/tilld\\",\\"events\\":[\\"payment.confirmed\\"],\\"secret\\":\\"$SECRET\\"}"
\`\`\`

## Verify its signature

Ship only when the signature is right. With the body's bytes in \`body.json\`, as they were received, this prints what
\`X-Service-Signature\` must be:

\`\`\`sh
openssl dgst -sha256 -hmac "$SECRET" -r body.json | cut -d ' ' -f 1
\`\`\`
`.trim()
