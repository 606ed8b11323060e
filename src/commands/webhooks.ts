import { Command, Options } from "@effect/cli"
import { Duration, Effect, Option } from "effect"
import { RotateSecret, type SecretView, ShowSecret } from "../Control/controlRequests.ts"
import { common, UsageError } from "./commonOptions.ts"
import { listCommand, redeliverCommand, showCommand, test } from "./deliveries.ts"
import { changeCommand, endpointsCommand } from "./endpoints.ts"
import { account, mode, overlapOption } from "./options.ts"
import { printResult } from "./result.ts"

const defaultOverlap = Duration.hours(24)

const overlap = overlapOption.pipe(
  Options.withDescription("With --rotate: how long the present secret still signs; otherwise 24h"),
  Options.optional
)

const rendered = ({ secret }: SecretView) => secret

const explained = ({ previous }: SecretView) =>
  previous &&
  `Until ${previous.until} X-Service-Signature stays on the secret before it, ${previous.secret}; ` +
    "webhook-signature has a signature of each."

const secret = Command.make(
  "secret",
  {
    ...common,
    mode,
    account,
    rotate: Options.boolean("rotate").pipe(
      Options.withDescription("Make a new secret, which replaces the present one")
    ),
    overlap
  },
  Effect.fnUntraced(function* ({ account, mode, overlap, rotate, ...options }) {
    if (!rotate && Option.isSome(overlap)) {
      return yield* new UsageError({ message: "--overlap says how to --rotate, which was not given" })
    }
    const length = Option.getOrElse(overlap, () => defaultOverlap)
    const command = "webhooks secret"
    yield* rotate
      ? printResult(options, command, new RotateSecret({ account, mode, overlap: length }), rendered, explained)
      : printResult(options, command, new ShowSecret({ account, mode }), rendered, explained)
  })
).pipe(Command.withDescription("Print the secret that signs webhooks to payments' webhookUrl, or make a new one"))

/** `tilld webhooks`: deliveries, endpoints, tests and the signing secret. */
export const webhooksCommand = Command.make("webhooks").pipe(
  Command.withDescription("Webhooks: deliveries, endpoints, and the secret that signs"),
  Command.withSubcommands([listCommand, showCommand, redeliverCommand, endpointsCommand, changeCommand, test, secret])
)
