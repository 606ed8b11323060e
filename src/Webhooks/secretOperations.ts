/** The default secret of an account and mode, which signs webhooks to payments' own webhookUrl. */
import { Duration, Effect, Redacted, Schema } from "effect"
import { mustExist } from "../Auth/accountOperations.ts"
import { UnknownAccount } from "../Domain/Account.ts"
import { defaultOverlapHours, longestOverlap } from "../Domain/ApiKey.ts"
import { RotationUnderWay, SecretReplaced, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { Moment } from "../lib/moment.ts"
import { AccountField, durationUpTo, ModeField, maybe, otherwise } from "../Operations/inputFields.ts"
import { operation, withFlag } from "../Operations/operation.ts"
import { defaultSecrets, type SecretPair, SigningKeys } from "./SigningKeys.ts"

const Secret = Schema.Struct({
  secret: Schema.String,
  /** The previous secret, while it still signs. */
  previous: Schema.optional(Schema.Struct({ secret: Schema.String, until: Moment }))
})

export type SecretJson = typeof Secret.Encoded

const shown = ({ current, previous }: SecretPair) => ({
  secret: Redacted.value(current),
  previous: previous && { secret: Redacted.value(previous.secret), until: previous.until }
})

export const showSecret = operation({
  name: "webhooks secret",
  summary: "Print the secret that signs webhooks to payments' webhookUrl",
  input: { mode: ModeField, account: AccountField },
  output: Secret,
  refusals: [UnknownAccount, SecretUnreadable],
  audit: ({ account, mode }) => ({ account, mode }),
  run: Effect.fnUntraced(function* (owner) {
    yield* mustExist(owner.account)
    return shown(yield* defaultSecrets(owner))
  })
})

export const rotateSecret = operation({
  name: "webhooks secret --rotate",
  summary: "Make a new secret that signs webhooks to payments' webhookUrl",
  input: {
    mode: ModeField,
    account: AccountField,
    overlap: withFlag(
      otherwise(durationUpTo(longestOverlap), () => Duration.hours(defaultOverlapHours)),
      {
        about: "With --rotate: how long the present secret still signs; otherwise 24h",
        value: "DURATION"
      }
    ),
    /** The mark of the secret that it is to replace: where another one is in force, it is refused. */
    replaces: maybe(Schema.String)
  },
  output: Secret,
  refusals: [UnknownAccount, RotationUnderWay, SecretReplaced, SecretUnreadable],
  audit: ({ account, mode, overlap }) => ({ account, mode, overlap: Duration.format(overlap) }),
  run: Effect.fnUntraced(function* ({ account, mode, ...rotation }) {
    yield* mustExist(account)
    const keys = yield* SigningKeys
    return shown(yield* keys.rotate({ account, mode }, rotation))
  })
})
