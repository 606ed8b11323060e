/**
 * The sink of log lines: standard error, which may be a file on a full disk, or a pipe whose reader stops or dies.
 * Writing never blocks, fails or grows the memory without bound: lines that cannot be written are dropped and counted.
 * `cli.ts` makes the one of the process, through the console that it gives to all that log. Its timers are Node's: it
 * also serves what is written while no fiber runs.
 */
// @effect-diagnostics globalTimers:off
import { Console } from "node:console"
import { Writable } from "node:stream"
import { Context, Effect } from "effect"
import { Metrics } from "./Metrics.ts"
import { Workers } from "./Workers.ts"

/** Bytes of lines that wait for a reader. */
const mostWaiting = 4 * 1024 * 1024
/** Milliseconds between two tries of a pipe that is full. */
const pause = 50
/** How often `drain` tries, before a process ends without the rest: a second. */
const lastTries = 20

const newline = Buffer.from("\n")

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "")

export class LogSink {
  readonly #write: (bytes: Uint8Array) => number
  readonly #waiting: Array<Buffer> = []
  #waitingBytes = 0
  #retry: NodeJS.Timeout | undefined
  /** The first of those that wait is the rest of a line. */
  #hasRest = false
  /** The last write ended within a line. */
  #isTorn = false
  #dropped = 0
  #failure: string | undefined

  /** @param write writes some of the bytes without waiting and says how many, or throws as `fs.writeSync` does */
  constructor(write: (bytes: Uint8Array) => number) {
    this.#write = write
  }

  /** Lines that were not written since the start. */
  get dropped(): number {
    return this.#dropped
  }

  /** Why the last line could not be written; undefined once one could. */
  get failure(): string | undefined {
    return this.#failure
  }

  /** Takes whole lines, as one. */
  write(lines: Buffer): void {
    if (this.#waitingBytes + lines.length > mostWaiting) {
      this.#drop("its reader does not read")
      return
    }
    this.#waiting.push(lines)
    this.#waitingBytes += lines.length
    if (this.#retry === undefined) this.#flush()
  }

  /** Calls `done` when all that waits is written, or after a second. */
  drain(done: () => void, tries = lastTries): void {
    this.#flush()
    if (this.#waiting.length === 0 || tries === 0) done()
    else setTimeout(() => this.drain(done, tries - 1), pause)
  }

  #drop(failure: string): void {
    this.#dropped += 1
    this.#failure = failure
  }

  #flush(): void {
    clearTimeout(this.#retry)
    this.#retry = undefined
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      // A full disk takes part of a line: the next one must not continue it.
      const bytes = this.#isTorn && !this.#hasRest ? Buffer.concat([newline, first]) : first
      try {
        const written = this.#write(bytes)
        this.#isTorn = bytes[written - 1] !== newline[0]
        this.#hasRest = written < bytes.length
        this.#take(bytes.subarray(written))
        this.#failure = undefined
      } catch (error) {
        if (codeOf(error) === "EAGAIN") {
          this.#retry = setTimeout(() => this.#flush(), pause).unref()
          return
        }
        this.#hasRest = false
        this.#take()
        this.#drop(codeOf(error))
      }
    }
  }

  /** Removes the first waiting line, except its rest. */
  #take(rest: Buffer = Buffer.alloc(0)): void {
    const before = this.#waiting[0]?.length ?? 0
    if (rest.length > 0) this.#waiting[0] = rest
    else this.#waiting.shift()
    this.#waitingBytes += rest.length - before
  }
}

/** The process's log sink. */
export class StandardError extends Context.Reference<StandardError>()("tilld/Telemetry/StandardError", {
  // For tests in one process, which log to the usual console.
  defaultValue: () => new LogSink((bytes) => bytes.length)
}) {}

/** A console on standard output and on the sink for standard error. */
export const consoleOn = (sink: LogSink): Console => {
  const stderr = new Writable({
    write: (chunk: Buffer, _, done) => {
      sink.write(chunk)
      done()
    }
  })
  // To look at process.stderr opens it, and Node makes a pipe non-blocking then.
  const { isTTY } = process.stderr
  return new Console({ stdout: process.stdout, stderr, colorMode: isTTY && process.stderr.hasColors() })
}

const interval = "5 seconds"

/** The worker that reports missing lines in the metrics, in /readyz and, once it is writable, in the log. */
export const watchLog = Effect.gen(function* () {
  const sink = yield* StandardError
  const { logLinesDropped } = yield* Metrics
  const workers = yield* Workers
  const heartbeat = workers.worker("log", interval)
  workers.remark("log", () =>
    sink.failure === undefined
      ? undefined
      : `the log on standard error cannot be written (${sink.failure}): ${sink.dropped} lines are missing`
  )
  let counted = 0
  let said = 0
  const look = Effect.suspend(() => {
    const { dropped } = sink
    logLinesDropped.inc(dropped - counted)
    counted = dropped
    if (dropped === said) return Effect.void
    return Effect.logWarning("lines of the log could not be written, and are missing").pipe(
      Effect.annotateLogs({ lines: dropped - said }),
      Effect.tap(() =>
        Effect.sync(() => {
          if (sink.dropped === dropped) said = dropped
        })
      )
    )
  })
  return yield* Effect.forever(Effect.zipRight(heartbeat(look), Effect.sleep(interval))).pipe(
    Effect.annotateLogs({ service: "log" })
  )
})
