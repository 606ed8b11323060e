import { Effect, Redacted, Schema } from "effect"
import { maybe } from "../../Auth/inputFields.ts"
import { asked } from "../../Auth/inputText.ts"
import {
  changeEndpoint,
  deleteEndpoint,
  type ListedEndpointJson,
  listEndpoints,
  registerEndpoint
} from "../../Webhooks/endpointOperations.ts"
import { freshSecret } from "../../Webhooks/signature.ts"
import { controlTargetOf, UsageError } from "../commonOptions.ts"
import { complain, print, table } from "../Output.ts"
import { askFor, commandOf, commandWith, decoded } from "../operationCommand.ts"
import { readSigningSecret } from "../signingSecret.ts"

const row = ({ createdAt, events, id, mode, url }: ListedEndpointJson) => [id, createdAt, mode, events.join(","), url]
const endpointTable = (endpoints: ReadonlyArray<ListedEndpointJson>) =>
  table(["ID", "CREATED", "MODE", "EVENTS", "URL"], endpoints.map(row))

/** `tilld webhooks endpoints`. */
export const endpointsCommand = commandOf(listEndpoints, { print: endpointTable })

/** `tilld webhooks register`. */
export const registerCommand = commandOf(
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

const newSecret = asked(maybe(Schema.Boolean), { about: "Make a new secret, and print it" })

/** `tilld webhooks change`. A new secret is made here: it is on standard output, and nowhere else. */
export const changeCommand = commandWith(
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
export const deleteCommand = commandOf(deleteEndpoint, {
  print: ({ cancelled, id }) => `${id} is deleted; deliveries that were cancelled with it: ${cancelled}`
})
