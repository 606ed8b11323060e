import { Data } from "effect"

/** A collection cannot be planned, signed or sent as it is: nothing was done. The message says why, and what to do. */
export class CollectRefused extends Data.TaggedError("CollectRefused")<{ readonly message: string }> {}

export const collectRefusal = (message: string) => new CollectRefused({ message })
