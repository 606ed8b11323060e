import type { Effect } from "effect"
import { type NoThread, threadOf } from "../../Sql/thread.ts"
import type { ExtendedKey } from "./childKey.ts"

/** `count` addresses of an external chain, from index `from` on. */
export interface IndexRange {
  readonly external: ExtendedKey
  readonly from: number
  readonly count: number
}

export type Derive = (range: IndexRange) => Effect.Effect<ReadonlyArray<string>, NoThread>

/** How long an answer may take; a thousand addresses take a tenth of a second. */
const deadline = "10 seconds"

// In the bundle a file of its own, beside the one that this is a part of.
const deriver = new URL("./deriver.js", import.meta.url)

/** Derives on a thread, beside the requests. Ask for one range after another. */
export const derivingThread = (file = deriver) => threadOf<IndexRange, ReadonlyArray<string>>(file, deadline)
