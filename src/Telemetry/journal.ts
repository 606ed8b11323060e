/**
 * systemd's journal reads standard error line by line, and takes a line's priority from `<N>` before it (sd-daemon(3)):
 * `journalctl -p err` shows errors only where each line has it.
 */
import { fstatSync } from "node:fs"
import { Either, Logger, LogLevel } from "effect"

const standardError = 2

/**
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
export const withPriorities = (logger: Logger.Logger<unknown, string>): Logger.Logger<unknown, string> =>
  Logger.make((entry) => withPriority(entry.logLevel, logger.log(entry)))
