/** What the daemon sees of the machine and the process that it runs in: the clock, file descriptors, and warnings of Node. */
import { readdirSync, readFileSync } from "node:fs"
import { Clock, Effect, Runtime } from "effect"
import { LogLimit } from "./LogLimit.ts"
import { Metrics } from "./Metrics.ts"
import { Workers } from "./Workers.ts"

const clockInterval = "1 second"
/** A time service slews smaller differences. Milliseconds. */
const tolerance = 2_000

/** Milliseconds by which the wall clock is ahead of the monotonic one: it changes only when the clock is set. */
const offset = Effect.zipWith(
  Clock.currentTimeMillis,
  Clock.currentTimeNanos,
  (wall, monotonic) => wall - Number(monotonic / 1_000_000n)
)

/**
 * The worker that notices when this machine's clock is set, by comparing it with the monotonic clock each second.
 * Payments expire, quotes end and webhooks are retried by the clock: the log then shows the reason.
 */
export const watchClock = Effect.gen(function* () {
  const { clockJumps } = yield* Metrics
  const heartbeat = (yield* Workers).worker("clock", clockInterval)
  const limited = new LogLimit({ perKey: 10, inAll: 10 })
  let before = yield* offset

  const look = Effect.gen(function* () {
    const now = yield* offset
    const by = now - before
    if (Math.abs(by) < tolerance) return
    before = now
    clockJumps.inc()
    const direction = by > 0 ? "forward" : "back"
    const line = Effect.logWarning(`this machine's clock was set ${direction}: see what sets it, such as chrony`)
    yield* limited.write("", Effect.annotateLogs(line, { bySeconds: by / 1000 }))
  })
  return yield* Effect.forever(Effect.zipRight(heartbeat(look), Effect.sleep(clockInterval))).pipe(
    Effect.annotateLogs({ service: "clock" })
  )
})

/** The file descriptors of this process: open ones, and how many it may have (`LimitNOFILE`). */
export interface Descriptors {
  readonly open: number
  /** Infinity: no limit. */
  readonly limit: number
}

const interval = "5 seconds"
/** While at least this part of the descriptors is open, the log says so once a minute. */
const nearlyAll = 0.9

const limitIn = (limits: string): number => {
  const [, soft = ""] = /^Max open files +(\S+)/m.exec(limits) ?? []
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft)
}

const isExhausted = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE")

/** Of another process; undefined where this user may not see them. */
export const descriptorsOf = (pid: number): Descriptors | undefined => {
  try {
    const limit = limitIn(readFileSync(`/proc/${pid}/limits`, "utf8"))
    return { open: readdirSync(`/proc/${pid}/fd`).length, limit }
  } catch {
    return undefined
  }
}

// The last one that could be read: with no descriptor left none can. `prlimit` changes it.
let limit: number | undefined

/** Undefined where the system has no /proc. */
export const readDescriptors = (): Descriptors | undefined => {
  try {
    limit = limitIn(readFileSync("/proc/self/limits", "utf8"))
    // Less the one that reads the folder.
    return { open: readdirSync("/proc/self/fd").length - 1, limit }
  } catch (error) {
    return limit !== undefined && isExhausted(error) ? { open: limit, limit } : undefined
  }
}

/** Whether new connections and files are refused for lack of descriptors, or soon will be. */
export const areNearlyAllOpen = ({ limit, open }: Descriptors): boolean => open >= nearlyAll * limit

/**
 * The worker that warns of descriptors before none is left. Without one Node closes new connections, and connections to
 * providers and receivers fail, with no line in the log.
 */
export const watchDescriptors = (read: () => Descriptors | undefined = readDescriptors) =>
  Effect.gen(function* () {
    const workers = yield* Workers
    const heartbeat = workers.worker("descriptors", interval)
    workers.condition("descriptors", () => {
      const found = read()
      return found !== undefined && areNearlyAllOpen(found)
        ? `${found.open} of ${found.limit} file descriptors are open: connections are refused`
        : undefined
    })
    const limited = new LogLimit({ perKey: 1, inAll: 1 })
    let wereNearly = false
    const look = Effect.suspend(() => {
      const found = read()
      const areNearly = found !== undefined && areNearlyAllOpen(found)
      const haveEnded = wereNearly && !areNearly
      wereNearly = areNearly
      if (haveEnded) return Effect.logInfo("file descriptors are free again").pipe(Effect.annotateLogs({ ...found }))
      const warning = Effect.logError(
        "almost no file descriptor is free, and connections are refused: raise LimitNOFILE, or find who opens so many"
      )
      return areNearly ? limited.write("", Effect.annotateLogs(warning, { ...found })) : Effect.void
    })
    return yield* Effect.forever(Effect.zipRight(heartbeat(look), Effect.sleep(interval))).pipe(
      Effect.annotateLogs({ service: "descriptors" })
    )
  })

/** Logs the warnings of Node, which it would print as plain text between the lines of the log, until the scope ends. */
export const logProcessWarnings = Effect.acquireRelease(
  Effect.map(Effect.runtime<never>(), (runtime) => {
    const limited = new LogLimit({ perKey: 6, inAll: 6 })
    const log = ({ message, name, stack }: Error) => {
      const line = Effect.annotateLogs(Effect.logWarning(`Node warns: ${message}`), { name, stack })
      Runtime.runFork(runtime)(limited.write("", line))
    }
    const before = process.listeners("warning")
    process.removeAllListeners("warning").on("warning", log)
    return () => {
      process.off("warning", log)
      for (const listener of before) process.on("warning", listener)
    }
  }),
  (restore) => Effect.sync(restore)
)
