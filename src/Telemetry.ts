import { Layer, Logger, LogLevel } from "effect"
import type { SettingsShape } from "./Settings.ts"

const levels = {
  trace: LogLevel.Trace,
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warning: LogLevel.Warning,
  error: LogLevel.Error
} as const

/** What the command line logs with: a line each on standard error, since standard output is for results. */
export const commandLogger = Logger.withConsoleError(Logger.logfmtLogger)

/** Logs on standard error, a line each. Nothing exports spans yet, and making them costs a tenth of the HTTP speed. */
export const layer = ({ format, level }: SettingsShape["log"]) =>
  Layer.mergeAll(
    Logger.remove(Logger.defaultLogger),
    Logger.remove(commandLogger),
    Logger.add(format === "json" ? Logger.withConsoleError(Logger.jsonLogger) : Logger.prettyLogger({ stderr: true })),
    Logger.minimumLogLevel(levels[level]),
    Layer.setTracerEnabled(false)
  )
