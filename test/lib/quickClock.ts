import { Effect, Layer, TestClock } from "effect"
import { eventLoopTurn } from "../../src/lib/waiting.ts"

/**
 * Effect's test clock looks twice, a timer of a millisecond apart, whether all fibers rest, before and after each step of
 * time. Fibers that wait for nothing outside this process come to rest within a turn of the event loop.
 */
export const quickClock = Layer.effectDiscard(
  Effect.map(TestClock.testClock(), (clock) => void Object.assign(clock, { yieldTimer: eventLoopTurn }))
)
