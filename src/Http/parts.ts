/** Long work of a request, such as a search or an export, in parts that take a few milliseconds each. */
import { Effect, FiberRef } from "effect"
import { eventLoopTurn } from "../lib/waiting.ts"

/** What comes before the next part. Where requests have turns (`turns.ts`), the work waits for another one. */
export const partTurn = FiberRef.unsafeMake<Effect.Effect<void>>(eventLoopTurn)

/** Between two parts: others come first. */
export const betweenParts: Effect.Effect<void> = Effect.flatten(FiberRef.get(partTurn))
