import type { Effect } from "effect"
import type { ExtendedKey } from "../../Settings/childKey.ts"
import { type NoThread, threadOf } from "../../Sql/workerThread.ts"

/** `count` addresses of an external chain, from index `from` on. */
export interface IndexRange {
  readonly external: ExtendedKey
  readonly from: number
  readonly count: number
}

export type Derive = (range: IndexRange) => Effect.Effect<ReadonlyArray<string>, NoThread>

/** For one range; a thousand addresses take a tenth of a second. */
const deadline = "10 seconds"

// A file of its own in the bundle, next to the bundle that this module is in.
const deriver = new URL("./deriver.js", import.meta.url)

/** Derives addresses on a worker thread, so that requests are not held up. Call it for one range at a time. */
export const derivingThread = (file = deriver) => threadOf<IndexRange, ReadonlyArray<string>>(file, deadline)
