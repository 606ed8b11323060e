import { Array as Arr, Cause, Effect, HashMap, Layer, Logger, LogLevel } from "effect"
import { shown } from "../lib/text.ts"
import type { SettingsShape } from "../Settings.ts"
import { withPriorities } from "./journal.ts"

const levels = {
  trace: LogLevel.Trace,
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warning: LogLevel.Warning,
  error: LogLevel.Error
} as const

// Errors of providers and receivers are logged with texts from outside, which must not control a terminal.
const shownText = (value: unknown): unknown => (typeof value === "string" ? shown(value) : value)

const lines = {
  json: Logger.map(Logger.jsonLogger, shown),
  logfmt: Logger.map(Logger.logfmtLogger, shown)
}

/** The logger of the command line. It writes to standard error, since standard output is for results. */
export const commandLogger = Logger.withConsoleError(lines.logfmt)

/** The same where standard error is systemd's journal. */
export const commandJournalLogger = Logger.withConsoleError(withPriorities(lines.logfmt))

const jsonLogger = Logger.withConsoleError(lines.json)

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

// The journal keeps lines: instead of colours and indented lines it gets logfmt.
const journalLoggers = {
  json: Logger.withConsoleError(withPriorities(lines.json)),
  pretty: Logger.withConsoleError(withPriorities(lines.logfmt))
}

/** The daemon's logger, to standard error; `journal`: which is systemd's journal. */
export const loggingLayer = ({ format, level }: SettingsShape["log"], journal = false) =>
  Layer.mergeAll(
    Logger.remove(Logger.defaultLogger),
    // It keeps each line in the current span until that ends. The collector gets the lines with the span's id.
    Logger.remove(Logger.tracerLogger),
    Logger.remove(commandLogger),
    Logger.remove(commandJournalLogger),
    Logger.add((journal ? journalLoggers : { json: jsonLogger, pretty: prettyLogger })[format]),
    Logger.minimumLogLevel(levels[level])
  )

/** Exports spans and log lines to the configured collector. Without one there are no spans: they cost 10 % of HTTP speed. */
export const exportLayer = ({ otlpEndpoint }: SettingsShape["telemetry"]) =>
  otlpEndpoint === ""
    ? Layer.setTracerEnabled(false)
    : Layer.unwrapEffect(
        Effect.map(
          Effect.promise(() => import("./otlp.ts")),
          ({ otlpLayer }) => otlpLayer(otlpEndpoint)
        )
      )
