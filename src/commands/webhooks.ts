import { Command } from "@effect/cli"
import { list, redeliver, show, test } from "./deliveries.ts"
import { common } from "./Invocation.ts"
import { account, mode } from "./options.ts"
import { ShowSecret } from "./requests.ts"
import { printResult } from "./result.ts"

const secret = Command.make("secret", { ...common, mode, account }, (options) =>
  printResult(
    options,
    "webhooks secret",
    new ShowSecret({ account: options.account, mode: options.mode }),
    ({ secret }) => secret
  )
).pipe(Command.withDescription("Print the secret that signs for the webhookUrl of a payment"))

export const webhooks = Command.make("webhooks").pipe(
  Command.withDescription("Webhooks: deliveries, attempts, and the secret that signs"),
  Command.withSubcommands([list, show, redeliver, test, secret])
)
