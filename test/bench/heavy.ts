import { Effect } from "effect"
import { type Bound, type Figure, mebibytes, median, millis } from "./Figure.ts"
import type { Heavy } from "./heavyReader.ts"
import { startScript } from "./processes.ts"

interface Bounds {
  readonly floor: Bound
  readonly goal?: Bound
}

const stalls: Bounds = { floor: { atMost: 50 } }
const memory: Bounds = { floor: { atMost: 100 } }

/**
 * What answers of 20 MB do to the event loop and the memory of who reads them: brackets, of which no more is read than
 * tells, and as many values as an answer may have, which are all built and so cost what they weigh.
 */
const bounds: Readonly<Record<string, { readonly stall: Bounds; readonly memory: Bounds }>> = {
  "brackets 1": { stall: stalls, memory },
  "brackets 5": { stall: stalls, memory },
  "values 1": {
    stall: { floor: { atMost: 250 }, goal: { atMost: 50 } },
    memory: { floor: { atMost: 400 }, goal: { atMost: 100 } }
  },
  "values 5": { stall: { floor: { atMost: 250 }, goal: { atMost: 50 } }, memory: { floor: { atMost: 800 } } }
}

const onChains = (count: number): string => (count === 1 ? "one chain" : `${count} chains at once`)

/** A provider that answers 20 MB at a time, alone and on five chains at once. */
export const heavy = Effect.gen(function* () {
  const { said: port } = yield* startScript<number>("heavyAnswers.ts", [])
  const { said: measured } = yield* startScript<ReadonlyArray<Heavy>>("heavyReader.ts", [String(port)])
  const quiet = Math.max(...measured.flatMap(({ kind, stalls }) => (kind === "quiet" ? stalls : [])))
  return measured.flatMap(({ count, kind, memory, stalls }): ReadonlyArray<Figure> => {
    const bound = bounds[`${kind} ${count}`]
    if (bound === undefined) return []
    const what = `20 MB of ${kind}, ${onChains(count)}`
    return [
      {
        what: `stall, ${what}`,
        measured: `median of ${stalls.length} rounds, the longest ${millis(Math.max(...stalls))}`,
        beside: `${millis(quiet)} at rest`,
        judged: median(stalls),
        ...bound.stall,
        written: millis
      },
      {
        what: `memory, ${what}`,
        measured: "the most resident memory above that of before",
        judged: memory,
        ...bound.memory,
        written: mebibytes
      }
    ]
  })
}).pipe(Effect.scoped)
