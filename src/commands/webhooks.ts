import { Command } from "@effect/cli"
import { Effect, Redacted, Schema } from "effect"
import { maybe } from "../Operations/inputFields.ts"
import { withFlag } from "../Operations/inputText.ts"
import {
  changeEndpoint,
  deleteEndpoint,
  type ListedEndpointJson,
  listEndpoints,
  registerEndpoint
} from "../Webhooks/endpointOperations.ts"
import { rotateSecret, type SecretJson, showSecret } from "../Webhooks/secretOperations.ts"
import { freshSecret } from "../Webhooks/signature.ts"
import { controlTargetOf, UsageError } from "./commonOptions.ts"
import { complain, print, table } from "./Output.ts"
import { askFor, commandOf, commandWith, decoded, printOperation } from "./operationCommand.ts"
import { readSigningSecret } from "./signingSecret.ts"
import { listCommand, redeliverCommand, showCommand, test } from "./webhooks/deliveries.ts"

const row = ({ createdAt, events, id, mode, url }: ListedEndpointJson) => [id, createdAt, mode, events.join(","), url]
const endpointTable = (endpoints: ReadonlyArray<ListedEndpointJson>) =>
  table(["ID", "CREATED", "MODE", "EVENTS", "URL"], endpoints.map(row))

/** `tilld webhooks endpoints`. */
const endpointsCommand = commandOf(listEndpoints, { print: endpointTable })

/** `tilld webhooks register`. */
const registerCommand = commandOf(
  registerEndpoint,
  {
    print: ({ secret }) => secret,
    explain: ({ id }) =>
      `This is the secret of ${id}. It is shown only now: the receiver needs it to verify what it gets.`
  },
  (json) =>
    typeof json.secret === "string"
      ? Effect.map(readSigningSecret(json.secret), (secret) => ({ ...json, secret }))
      : Effect.succeed(json)
)

const newSecret = withFlag(maybe(Schema.Boolean), { about: "Make a new secret, and print it" })

/** `tilld webhooks change`. A new secret is made here: it is on standard output, and nowhere else. */
const changeCommand = commandWith(
  "change",
  changeEndpoint.summary,
  { ...changeEndpoint.fields, newSecret },
  ({ newSecret: makesNew, ...json }, target) =>
    Effect.gen(function* () {
      if (makesNew && "secret" in json) {
        return yield* new UsageError({ message: "Give either --secret or --new-secret" })
      }
      const made = makesNew ? { secret: Redacted.value(freshSecret()) } : {}
      const read = typeof json.secret === "string" ? { secret: yield* readSigningSecret(json.secret) } : {}
      const input = yield* decoded(changeEndpoint, { ...json, ...made, ...read })
      const changed = yield* askFor(yield* controlTargetOf(target), changeEndpoint, input)
      if (target.json) return yield* print(JSON.stringify({ ...changed, ...made }))
      yield* complain(endpointTable([changed]))
      yield* print(made.secret ?? changed.id)
    })
)

/** `tilld webhooks delete`. */
const deleteCommand = commandOf(deleteEndpoint, {
  print: ({ cancelled, id }) => `${id} is deleted; deliveries that were cancelled with it: ${cancelled}`
})

const printing = {
  print: ({ secret }: SecretJson) => secret,
  explain: ({ previous }: SecretJson) =>
    previous &&
    `Until ${previous.until} X-Service-Signature stays on the secret before it, ${previous.secret}; ` +
      "webhook-signature has a signature of each."
}

const rotate = withFlag(maybe(Schema.Boolean), { about: "Make a new secret, which replaces the present one" })

const secret = commandWith(
  "secret",
  "Print the secret that signs webhooks to payments' webhookUrl, or make a new one",
  { ...rotateSecret.fields, rotate },
  ({ rotate, ...json }, target) => {
    if (rotate) return printOperation(rotateSecret, printing, json, target)
    return "overlap" in json
      ? new UsageError({ message: "--overlap says how to --rotate, which was not given" })
      : printOperation(showSecret, printing, json, target)
  }
)

/** `tilld webhooks`: deliveries, endpoints, tests and the signing secret. */
export const webhooksCommand = Command.make("webhooks").pipe(
  Command.withDescription("Webhooks: deliveries, endpoints, and the secret that signs"),
  Command.withSubcommands([
    listCommand,
    showCommand,
    redeliverCommand,
    endpointsCommand,
    registerCommand,
    changeCommand,
    deleteCommand,
    test,
    secret
  ])
)
