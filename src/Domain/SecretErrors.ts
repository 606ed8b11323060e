import { Schema } from "effect"
import { iso } from "./Timestamp.ts"

/** The secret was rotated lately, and the one before still signs. Nothing was changed. */
export class RotationUnderWay extends Schema.TaggedError<RotationUnderWay>()("RotationUnderWay", {
  message: Schema.String
}) {
  /** `until`: the end of the overlap, in Unix milliseconds. */
  static readonly of = (until: number) =>
    new RotationUnderWay({
      message:
        `The last rotation is under way: the secret before it signs until ${iso(until)}. Wait for that, ` +
        "or end both secrets at once with --overlap 0s"
    })
}
