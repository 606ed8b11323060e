import { Worker } from "node:worker_threads"
import { Data, type Duration, Effect, RcRef } from "effect"

/** There is no thread, or it does not answer. */
export class NoThread extends Data.TaggedError("NoThread")<{ readonly cause: unknown }> {}

/** A thread takes 20 MiB: it ends when it has had nothing to do for this time. */
const patience = "10 seconds"

const start = (file: URL) =>
  Effect.acquireRelease(
    // An error is for those who wait for an answer. Without a listener it would end the process.
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
 * Asks a thread that runs `file`, beside everything else. It is started when it is asked; ask one thing after another.
 * A file that answers each message with one of its own is what it takes. After a failure another thread is started: what
 * the former may still answer is no answer to the next question.
 */
export const threadOf = <Request, Answer>(file: URL, deadline: Duration.DurationInput) =>
  Effect.map(
    RcRef.make({ acquire: start(file), idleTimeToLive: patience }),
    (thread) =>
      (request: Request): Effect.Effect<Answer, NoThread> =>
        Effect.scoped(Effect.flatMap(RcRef.get(thread), (running) => ask<Request, Answer>(running, request))).pipe(
          Effect.timeoutFail({ duration: deadline, onTimeout: () => new NoThread({ cause: "it does not answer" }) }),
          Effect.tapError(() => RcRef.invalidate(thread))
        )
  )
