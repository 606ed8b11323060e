import { HashMap, Layer, Logger, LogLevel } from "effect"

/** A line of the log. */
export interface Logged {
  readonly message: string
  readonly level: string
  readonly annotations: Readonly<Record<string, unknown>>
}

/** A logger that collects the lines of every level, in place of the default one. */
export const collected = () => {
  const lines: Array<Logged> = []
  const logger = Logger.make<unknown, void>(({ annotations, logLevel, message }) => {
    const [text] = [message].flat()
    lines.push({
      message: String(text),
      level: logLevel.label,
      annotations: Object.fromEntries(HashMap.entries(annotations))
    })
  })
  return {
    lines,
    logger: Layer.merge(Logger.replace(Logger.defaultLogger, logger), Logger.minimumLogLevel(LogLevel.All))
  }
}
