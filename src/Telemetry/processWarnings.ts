import { Effect, Runtime } from "effect"
import { LogLimit } from "./LogLimit.ts"

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
