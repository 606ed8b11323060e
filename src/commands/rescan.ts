import { Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { Rescan } from "../Control/controlRequests.ts"
import type { Network } from "../Domain/Chain.ts"
import { askDaemon } from "./askDaemon.ts"
import { common, controlTargetOf } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"
import { blockNumber, chain, checkConfigured, mode } from "./options.ts"

interface Wanted extends Network {
  readonly from: number
  readonly to: Option.Option<number>
}

const rendered = ({ from, to }: { from: number; to: number }, receipts: number, added: number): string =>
  `Blocks ${from} to ${to} have been read again: ${receipts} receipts found, ${added} of them new`

/** Has a range read in parts, each a request. Progress goes to standard error where there is more than one part. */
const run = Effect.fn("commands.rescan")(function* (options: Parameters<typeof controlTargetOf>[0], wanted: Wanted) {
  const place = yield* controlTargetOf(options)
  yield* checkConfigured(place, wanted)
  const { chain, from, mode } = wanted
  let to = Option.getOrUndefined(wanted.to)
  let [next, receipts, added] = [from, 0, 0]
  while (true) {
    const part = new Rescan({ chain, mode, from: next, ...(to === undefined ? {} : { to }) })
    const done = yield* askDaemon(place, "rescan", part).pipe(
      Effect.tapError(() => (next > from ? complain(`Blocks ${from} to ${next - 1} have been read`) : Effect.void))
    )
    receipts += done.receipts
    added += done.added
    to = done.to
    next = done.through + 1
    if (next > to) return { chain, mode, from, to, blocks: to - from + 1, receipts, added }
    yield* complain(`block ${done.through} of ${to}, ${receipts} receipts found`)
  }
})

/** `tilld rescan`: reads blocks again. */
export const rescanCommand = Command.make(
  "rescan",
  {
    ...common,
    chain,
    mode,
    from: blockNumber("from", "The first block to read"),
    to: blockNumber("to", "The last one; otherwise the last that the daemon has read").pipe(Options.optional)
  },
  Effect.fnUntraced(function* ({ chain, from, mode, to, ...options }) {
    const done = yield* run(options, { chain, mode, from, to })
    yield* print(options.json ? JSON.stringify(done) : rendered(done, done.receipts, done.added))
  })
).pipe(Command.withDescription("Read blocks again, and store what is missing; what is there stays as it is"))
