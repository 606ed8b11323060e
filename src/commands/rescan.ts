import { Effect } from "effect"
import { rescanBlocks } from "../Chains/repairOperations.ts"
import { controlTargetOf } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"
import { askFor, commandWith, decoded } from "./operationCommand.ts"

/** `tilld rescan`: reads blocks again, in parts, each a request. Progress goes to standard error where there are several. */
export const rescanCommand = commandWith("rescan", rescanBlocks.summary, rescanBlocks.fields, (json, target) =>
  Effect.gen(function* () {
    const { chain, from, mode, ...given } = yield* decoded(rescanBlocks, json)
    const place = yield* controlTargetOf(target)
    let { to } = given
    let [next, receipts, added] = [from, 0, 0]
    while (true) {
      const part = { chain, mode, from: next, ...(to === undefined ? {} : { to }) }
      const done = yield* askFor(place, rescanBlocks, part).pipe(
        Effect.tapError(() => (next > from ? complain(`Blocks ${from} to ${next - 1} have been read`) : Effect.void))
      )
      receipts += done.receipts
      added += done.added
      to = done.to
      next = done.through + 1
      if (next > to) break
      yield* complain(`block ${done.through} of ${to}, ${receipts} receipts found`)
    }
    const read = `Blocks ${from} to ${to} have been read again: ${receipts} receipts found, ${added} of them new`
    yield* print(target.json ? JSON.stringify({ chain, mode, from, to, blocks: to - from + 1, receipts, added }) : read)
  })
)
