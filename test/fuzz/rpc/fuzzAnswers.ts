import { Effect } from "effect"
import { Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { Stage } from "../../sim/simulate.ts"
import { heapBytes } from "./heap.ts"
import { Line } from "./Line.ts"
import { Watching } from "./watching.ts"

/** Answers that one life of the watcher is given. */
const perLife = 500

/** A life that did not go as it should, and how to see it again. */
export interface Fault {
  readonly again: string
  readonly why: string
  /** The last answers before it. */
  readonly answers: ReadonlyArray<string>
}

export interface Report {
  readonly faults: ReadonlyArray<Fault>
  readonly made: number
  /** How many were made of a kind, and to a method. */
  readonly counts: ReadonlyMap<string, number>
  /** Responses that the client rejected, each of which health reported. */
  readonly garbage: number
  /** Bytes in use after each life. */
  readonly heaps: ReadonlyArray<number>
  /** Bytes that each answer left behind while a watcher ran, by life. */
  readonly leftBehind: ReadonlyArray<number>
  /** Payments that have their money, and wait for a person to say so. */
  readonly waiting: number
  readonly lives: number
}

const line = Effect.acquireRelease(
  Effect.promise(async () => {
    const opened = new Line()
    await opened.listen()
    return opened
  }),
  (opened) => Effect.promise(() => opened.close())
)

const stage = Effect.acquireRelease(
  Effect.promise(() => Stage.make()),
  (made) => Effect.sync(() => made.close())
)

/**
 * Makes answers of a seed and gives them to the watchers of one daemon after another, each from its first head to its
 * payments' end: over HTTP on this machine, by the daemon's own client, watcher, settlement and store.
 *
 * @param life only the one of that number
 */
export const fuzzAnswers = Effect.fn("test.fuzzAnswers")(function* (seed: number, count: number, life?: number) {
  const lines = { hostile: yield* line, honest: yield* line, rpc: yield* Rpc }
  const where = yield* stage
  const faults: Array<Fault> = []
  const counts = new Map<string, number>()
  const heaps: Array<number> = []
  const leftBehind: Array<number> = []
  let [made, garbage, waiting] = [0, 0, 0]
  for (let i = life ?? 0; made < count && (life === undefined || i === life); i++) {
    const watching = new Watching(where, lines, `${seed} ${i}`)
    const played = yield* Effect.promise(() => watching.play(Math.min(perLife, count)))
    made += played.hostile.made
    garbage += played.garbage
    waiting += played.waiting
    for (const [name, times] of played.hostile.counts) counts.set(name, (counts.get(name) ?? 0) + times)
    if (played.fault !== undefined) {
      const again = `npm run test:fuzz -- --of answers --seed ${seed} --life ${i}`
      faults.push({ again, why: played.fault, answers: [...played.hostile.last] })
    }
    heaps.push(heapBytes())
    leftBehind.push(played.leftBehind)
  }
  const report: Report = { faults, made, counts, garbage, heaps, leftBehind, waiting, lives: heaps.length }
  return report
}, Effect.scoped)
