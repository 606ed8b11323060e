import { Command } from "@effect/cli"
import { Schema } from "effect"
import { maybe } from "../Auth/inputFields.ts"
import { asked } from "../Auth/inputText.ts"
import { rotateSecret, type SecretJson, showSecret } from "../Webhooks/secretOperations.ts"
import { UsageError } from "./commonOptions.ts"
import { commandWith, printOperation } from "./operationCommand.ts"
import { listCommand, redeliverCommand, showCommand, test } from "./webhooks/deliveries.ts"
import { changeCommand, deleteCommand, endpointsCommand, registerCommand } from "./webhooks/endpoints.ts"

const printing = {
  print: ({ secret }: SecretJson) => secret,
  explain: ({ previous }: SecretJson) =>
    previous &&
    `Until ${previous.until} X-Service-Signature stays on the secret before it, ${previous.secret}; ` +
      "webhook-signature has a signature of each."
}

const rotate = asked(maybe(Schema.Boolean), { about: "Make a new secret, which replaces the present one" })

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
