import { Worker } from "node:worker_threads"
import { Data, Effect, RcRef } from "effect"
import type { ExtendedKey } from "./childKey.ts"

/** `count` addresses of an external chain, from index `from` on. */
export interface Range {
  readonly external: ExtendedKey
  readonly from: number
  readonly count: number
}

/** There is no thread, or it does not answer. */
export class NoThread extends Data.TaggedError("NoThread")<{ readonly cause: unknown }> {}

export type Derive = (range: Range) => Effect.Effect<ReadonlyArray<string>, NoThread>

/** How long an answer may take; a thousand addresses take a tenth of a second. */
const deadline = "10 seconds"
/** A thread takes 20 MiB: it ends when it has had nothing to do for this time. */
const patience = "10 seconds"

// In the bundle a file of its own, beside the one that this is a part of.
const deriver = new URL("./deriver.js", import.meta.url)

const startThread = (file: URL) =>
  Effect.acquireRelease(
    // An error is for those who wait for an answer. Without a listener it would end the process.
    Effect.sync(() => new Worker(file).on("error", () => undefined)),
    (thread) => Effect.promise(() => thread.terminate())
  )

const ask = (thread: Worker, range: Range) =>
  Effect.async<ReadonlyArray<string>, NoThread>((resume) => {
    const stopListening = () => thread.off("message", answered).off("error", failed).off("exit", ended)
    const answered = (addresses: ReadonlyArray<string>) => {
      stopListening()
      resume(Effect.succeed(addresses))
    }
    const failed = (cause: unknown) => {
      stopListening()
      resume(new NoThread({ cause }))
    }
    const ended = () => failed("it has ended")
    if (thread.threadId === -1) return ended()
    thread.on("message", answered).on("error", failed).on("exit", ended).postMessage(range)
    return Effect.sync(stopListening)
  }).pipe(Effect.timeoutFail({ duration: deadline, onTimeout: () => new NoThread({ cause: "it does not answer" }) }))

/** Derives on a thread, beside the requests. It is started when it is asked; ask for one range after another. */
export const derivingThread = (file = deriver) =>
  Effect.map(
    RcRef.make({ acquire: startThread(file), idleTimeToLive: patience }),
    (thread): Derive =>
      (range) =>
        Effect.scoped(Effect.flatMap(RcRef.get(thread), (running) => ask(running, range)))
  )
