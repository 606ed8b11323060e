import { fstatSync } from "node:fs"
import { Array as Arr, Cause, Effect, Either, HashMap, Layer, Logger, LogLevel } from "effect"
import { shown } from "../lib/text.ts"
import type { SettingsShape } from "../Settings.ts"

const standardError = 2

/**
 * systemd's journal reads standard error line by line, and takes a line's priority from `<N>` before it (sd-daemon(3)):
 * `journalctl -p err` shows errors only where each line has it.
 *
 * Whether a descriptor leads to the journal: JOURNAL_STREAM names its device and inode. The variable alone proves nothing,
 * since a child whose output goes to a file inherits it (systemd.exec(5)).
 */
export const isJournal = (
  env: Readonly<Record<string, string | undefined>>,
  descriptor: number = standardError
): boolean =>
  env.JOURNAL_STREAM !== undefined &&
  Either.try(() => fstatSync(descriptor)).pipe(
    Either.match({ onLeft: () => false, onRight: ({ dev, ino }) => env.JOURNAL_STREAM === `${dev}:${ino}` })
  )

/** syslog(3): crit, err, warning, info, debug; the least level of each. */
const priorities = [
  [LogLevel.Fatal, 2],
  [LogLevel.Error, 3],
  [LogLevel.Warning, 4],
  [LogLevel.Info, 6]
] as const

/** A text with its priority before each of its lines. */
export const withPriority = (level: LogLevel.LogLevel, text: string): string => {
  const [, priority] = priorities.find(([least]) => LogLevel.greaterThanEqual(level, least)) ?? [undefined, 7]
  return text.replace(/^/gm, `<${priority}>`)
}

/** A logger whose lines have their priority. */
const withPriorities = (logger: Logger.Logger<unknown, string>): Logger.Logger<unknown, string> =>
  Logger.make((entry) => withPriority(entry.logLevel, logger.log(entry)))

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
