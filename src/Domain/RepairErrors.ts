import { Schema } from "effect"

/** A repair that cannot be done, or would change nothing, and why. Nothing was stored. */
export class RepairRefused extends Schema.TaggedError<RepairRefused>()("RepairRefused", { message: Schema.String }) {}
