import { writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Effect, Exit } from "effect"
import { runCommand } from "./commands/runCommand.ts"
import { consoleOn, LogSink } from "./Telemetry/LogSink.ts"
import { isJournal } from "./Telemetry/logging.ts"

const standardError = new LogSink((bytes) => writeSync(2, bytes))

// A reader such as `head` that has read enough ends no command. Whatever else loses a result makes the command fail.
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") return
  process.exitCode = 1
  standardError.write(Buffer.from(`tilld: standard output: ${message}\n`))
})

/** The options of `tilld serve`, where the words are these and nothing else. */
const serveOptions = ([command, ...words]: ReadonlyArray<string>) => {
  if (command !== "serve") return undefined
  let config: string | undefined
  let newDatabase = false
  for (const [i, word] of words.entries()) {
    if (word === "--new-database") newDatabase = true
    else if (word.startsWith("--config=")) config = word.slice("--config=".length)
    else if (words[i - 1] === "--config") config = word
    else if (word !== "--config" || words[i + 1] === undefined || words[i + 1]?.startsWith("-")) return undefined
  }
  return { config, newDatabase }
}

// The daemon starts without the parser of the command line, which would take a third of its start. Whatever is not just its
// options, help and mistakes too, is for the parser.
const options = serveOptions(process.argv.slice(2))
const command =
  options === undefined
    ? (await import("./commands/commandLine.ts")).commandLine(process.argv)
    : Effect.as((await import("./commands/serving.ts")).serve(options.config, options.newDatabase), 0)

// The only place that reads the environment. Node's own console fails where the reader of standard error has ended.
const program = runCommand(command, {
  ...{ env: process.env, isForJournal: isJournal(process.env) },
  ...{ standardError, console: consoleOn(standardError) }
})

NodeRuntime.runMain(program, {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit, done) => {
    const code = Exit.match(exit, {
      onSuccess: (code) => (typeof code === "number" ? code : 0),
      // SIGINT and SIGTERM interrupt, which is a success where `untilStopped` has said so.
      onFailure: (cause) => (Cause.isInterruptedOnly(cause) ? Number(process.exitCode ?? 1) : 1)
    })
    if (Exit.isInterrupted(exit) && code !== 0) standardError.write(Buffer.from("tilld: interrupted before its end\n"))
    standardError.drain(() => done(code))
  }
})
