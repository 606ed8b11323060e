import { Schema } from "effect"
import { iso } from "../lib/moment.ts"
import type { Owner } from "./Account.ts"
import type { EndpointId } from "./Ids.ts"

/** The secret was rotated recently, and the previous one still signs. Nothing was changed. */
export class RotationUnderWay extends Schema.TaggedError<RotationUnderWay>()("RotationUnderWay", {
  message: Schema.String,
  /** The end of the overlap, in Unix milliseconds. */
  until: Schema.Number
}) {
  static readonly of = (until: number) =>
    new RotationUnderWay({
      until,
      message:
        `The last rotation is under way: the secret before it signs until ${iso(until)}. Wait for that, ` +
        "or end both secrets at once with --overlap 0s"
    })
}

/** Another secret is in force than the one that was to be replaced: the request was made twice. Nothing was changed. */
export class SecretReplaced extends Schema.TaggedError<SecretReplaced>()("SecretReplaced", {}) {
  override get message() {
    return "Another secret is in force than the one that was to be replaced: tilld webhooks secret shows it"
  }
}

/** A stored secret cannot be unsealed: its row is damaged. Other secrets are not affected. */
export class SecretUnreadable extends Schema.TaggedError<SecretUnreadable>()("SecretUnreadable", {
  message: Schema.String
}) {
  static readonly ofEndpoint = (endpoint: EndpointId) =>
    new SecretUnreadable({
      message:
        `The stored secret of webhook endpoint ${endpoint} cannot be read, so that nothing can be signed for it. ` +
        "Give it a secret with PATCH /v1/webhooks/:id and overlapSeconds 0, or with tilld webhooks change --secret - --overlap 0s"
    })
  static readonly ofOwner = ({ account, mode }: Owner) =>
    new SecretUnreadable({
      message:
        `The stored default webhook secret of account ${account}, mode ${mode} cannot be read, so that nothing can be ` +
        `signed with it. Make a new one: tilld webhooks secret --account ${account} --mode ${mode} --rotate --overlap 0s`
    })
}
