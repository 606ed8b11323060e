// The client runs in other people's programs, without Effect: the platform's own timers are all it has.
// @effect-diagnostics globalTimers:off

/** Waits, unless `signal` aborts it: then it rejects with the signal's reason. */
export const sleep = (millis: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort)
      resolve()
    }, millis)
    signal?.addEventListener("abort", abort, { once: true })
  })

/**
 * Gives `work` a signal that aborts with the caller's, or after `millis` with `late`, and does not wait for work that
 * goes on in spite of it.
 */
export const withDeadline = async <A>(
  millis: number,
  late: Error,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<A>
): Promise<A> => {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  const timer = setTimeout(() => controller.abort(late), millis)
  signal?.addEventListener("abort", abort, { once: true })
  try {
    return await new Promise<A>((resolve, reject) => {
      controller.signal.addEventListener("abort", () => reject(controller.signal.reason), { once: true })
      work(controller.signal).then(resolve, reject)
    })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener("abort", abort)
  }
}
