import { Schema } from "effect"

/** Why a repair cannot be done, or would change nothing. Nothing was stored. */
export class RepairRefused extends Schema.TaggedError<RepairRefused>()("RepairRefused", { message: Schema.String }) {}
