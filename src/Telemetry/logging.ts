import { Array as Arr, Cause, HashMap, Layer, Logger, LogLevel } from "effect"
import { shown } from "../Domain/terminalText.ts"
import type { SettingsShape } from "../Settings.ts"

const levels = {
  trace: LogLevel.Trace,
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warning: LogLevel.Warning,
  error: LogLevel.Error
} as const

// Errors of providers and receivers are logged with texts from outside, which must not control a terminal.
const shownText = (value: unknown): unknown => (typeof value === "string" ? shown(value) : value)

/** The logger of the command line. It writes to standard error, since standard output is for results. */
export const commandLogger = Logger.withConsoleError(Logger.map(Logger.logfmtLogger, shown))

const jsonLogger = Logger.withConsoleError(Logger.map(Logger.jsonLogger, shown))

/** It writes colours itself, so texts are escaped before they reach it. */
const prettyLogger = Logger.mapInputOptions(
  Logger.prettyLogger({ stderr: true }),
  (entry: Logger.Logger.Options<unknown>) => ({
    ...entry,
    message: [
      ...Arr.ensure(entry.message),
      ...(Cause.isEmpty(entry.cause) ? [] : [Cause.pretty(entry.cause, { renderErrorCause: true })])
    ].map(shownText),
    cause: Cause.empty,
    annotations: HashMap.map(entry.annotations, shownText)
  })
)

/**
 * The daemon's logger, to standard error. Tracing is off: nothing exports spans yet, and they cost 10 % of HTTP speed.
 */
export const loggingLayer = ({ format, level }: SettingsShape["log"]) =>
  Layer.mergeAll(
    Logger.remove(Logger.defaultLogger),
    Logger.remove(commandLogger),
    Logger.add(format === "json" ? jsonLogger : prettyLogger),
    Logger.minimumLogLevel(levels[level]),
    Layer.setTracerEnabled(false)
  )
