import { Worker } from "node:worker_threads"
import { Data, type Duration, Effect, RcRef } from "effect"

/** The thread could not be started, failed, or does not answer. */
export class NoThread extends Data.TaggedError("NoThread")<{ readonly cause: unknown }> {}

/** A thread takes 20 MiB of memory. It ends after this time without a request. */
const idleTime = "10 seconds"

const start = (file: URL) =>
  Effect.acquireRelease(
    // Errors are handled where an answer is awaited. Without any listener an error would end the process.
    Effect.sync(() => new Worker(file).on("error", () => undefined)),
    (thread) => Effect.promise(() => thread.terminate())
  )

const ask = <Request, Answer>(thread: Worker, request: Request) =>
  Effect.async<Answer, NoThread>((resume) => {
    const stopListening = () => thread.off("message", answered).off("error", failed).off("exit", ended)
    const answered = (answer: Answer) => {
      stopListening()
      resume(Effect.succeed(answer))
    }
    const failed = (cause: unknown) => {
      stopListening()
      resume(new NoThread({ cause }))
    }
    const ended = () => failed("it has ended")
    if (thread.threadId === -1) return ended()
    thread.on("message", answered).on("error", failed).on("exit", ended).postMessage(request)
    return Effect.sync(stopListening)
  })

/**
 * Sends requests to a worker thread that runs `file`, which answers each message with one message. The thread is started
 * with the first request. One request at a time. After a failure a new thread is started, so that a late answer of the
 * old one is not taken for the answer to the next request.
 */
export const threadOf = <Request, Answer>(file: URL, deadline: Duration.DurationInput) =>
  Effect.map(
    RcRef.make({ acquire: start(file), idleTimeToLive: idleTime }),
    (thread) =>
      (request: Request): Effect.Effect<Answer, NoThread> =>
        Effect.scoped(Effect.flatMap(RcRef.get(thread), (running) => ask<Request, Answer>(running, request))).pipe(
          Effect.timeoutFail({ duration: deadline, onTimeout: () => new NoThread({ cause: "it does not answer" }) }),
          Effect.tapError(() => RcRef.invalidate(thread))
        )
  )
