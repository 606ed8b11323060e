import { Layer, Logger, LogLevel } from "effect"
import type { SettingsShape } from "../Settings.ts"

const levels = {
  trace: LogLevel.Trace,
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warning: LogLevel.Warning,
  error: LogLevel.Error
} as const

/** The logger of the command line. It writes to standard error, since standard output is for results. */
export const commandLogger = Logger.withConsoleError(Logger.logfmtLogger)

/**
 * The daemon's logger, to standard error. Tracing is off: nothing exports spans yet, and they cost 10 % of HTTP speed.
 */
export const loggingLayer = ({ format, level }: SettingsShape["log"]) =>
  Layer.mergeAll(
    Logger.remove(Logger.defaultLogger),
    Logger.remove(commandLogger),
    Logger.add(format === "json" ? Logger.withConsoleError(Logger.jsonLogger) : Logger.prettyLogger({ stderr: true })),
    Logger.minimumLogLevel(levels[level]),
    Layer.setTracerEnabled(false)
  )
