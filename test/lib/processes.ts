import { spawn } from "node:child_process"
import { Console } from "node:console"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Writable } from "node:stream"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Cause, Deferred, Effect, Exit, Fiber, FiberId, type Scope } from "effect"
import type { Invocation } from "../../src/Control/Invocation.ts"

/** The project's folder. */
export const root = fileURLToPath(new URL("../..", import.meta.url))

/** A file of the current build, by its path there. */
export const built = (file: string) => `dist/builds/${readFileSync(join(root, "dist/.inputs"), "utf8")}/${file}`

/** The program as it is shipped. */
const binary = fileURLToPath(new URL("../../dist/tilld.js", import.meta.url))

// Only the part of the environment that finds programs: the developer may have TILLD_ variables set.
export const { PATH } = process.env

/** Stands for the user's cache directory: where daemons keep their marks, outside of every copy of a database. */
const cache = mkdtempSync(join(tmpdir(), "tilld-cache-"))
process.once("exit", () => rmSync(cache, { recursive: true, force: true }))
/** Stands for the user's configuration directory. */
const configHome = join(cache, "config")
const place = { PATH, XDG_CACHE_HOME: cache, XDG_CONFIG_HOME: configHome }

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A process that a test has started. */
export interface Running {
  readonly pid: number
  /** The first line of either stream that fits (has the text), of those that came already or will; dies when the process ends first. */
  readonly line: (fits: string | RegExp | ((line: string) => boolean)) => Effect.Effect<string>
  /** Lines so far, of both streams in the order in which they came. */
  readonly lines: () => ReadonlyArray<string>
  readonly ended: Effect.Effect<Ended>
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Sends the signal, and waits for the end. */
  readonly end: (signal: NodeJS.Signals) => Effect.Effect<Ended>
}

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** What it reads on standard input; nothing unless given. */
  readonly input?: string
  /** Another copy of the program. */
  readonly binary?: string
}

/** What a process has said since it was last asked. */
interface Story {
  readonly title: string
  lines: Array<string>
  over: boolean
}

/** The last lines of a process, which say why it failed. */
const shownLines = 80
let recorded: ReadonlyArray<Story> = []

/** What each process has said since this was last called. */
export const takeStories = (): ReadonlyArray<string> => {
  const stories = recorded.map((each) => ({ ...each, lines: each.lines.splice(0) }))
  recorded = recorded.filter(({ over }) => !over)
  return stories.flatMap(({ lines, title }) =>
    lines.length === 0 ? [] : `--- ${title}\n${lines.slice(-shownLines).join("\n")}\n`
  )
}

/** Hears what a program says, under this title in a failed test, until it is over. */
const hearing = (title: string, name: string) => {
  const text = { stdout: "", stderr: "" }
  const rest = { stdout: "", stderr: "" }
  const lines: Array<string> = []
  const listeners = new Set<(line: string) => void>()
  const ended = Deferred.unsafeMake<Ended>(FiberId.none)
  const story: Story = { title, lines: [], over: false }
  recorded = [...recorded, story]

  const say = (stream: "stdout" | "stderr", chunk: string) => {
    text[stream] += chunk
    const [last = "", ...whole] = `${rest[stream]}${chunk}`.split("\n").reverse()
    rest[stream] = last
    for (const line of whole.reverse()) {
      lines.push(line)
      story.lines.push(line)
      for (const listener of listeners) listener(line)
    }
  }
  const line: Running["line"] = (fits) => {
    const isIt =
      typeof fits === "function"
        ? fits
        : (candidate: string) => (typeof fits === "string" ? candidate.includes(fits) : fits.test(candidate))
    const found = Effect.async<string>((resume) => {
      const said = lines.find(isIt)
      if (said !== undefined) return resume(Effect.succeed(said))
      const listener = (candidate: string) => {
        if (isIt(candidate)) resume(Effect.succeed(candidate))
      }
      listeners.add(listener)
      return Effect.sync(() => listeners.delete(listener))
    })
    const none = Effect.flatMap(Deferred.await(ended), ({ code, signal }) =>
      Effect.dieMessage(`${name} ended (${signal ?? `exit code ${code}`}) before it said ${fits}`)
    )
    return Effect.raceFirst(found, none)
  }
  return {
    say,
    isOver: () => story.over,
    over: (how: Exit.Exit<Pick<Ended, "code" | "signal">>) => {
      story.over = true
      Deferred.unsafeDone(
        ended,
        Exit.map(how, (end) => ({ ...end, ...text }))
      )
    },
    heard: { line, lines: () => [...lines], ended: Deferred.await(ended) }
  }
}

const launch = (command: string, args: ReadonlyArray<string>, options: RunOptions): Running => {
  const child = spawn(command, args, {
    cwd: options.cwd ?? root,
    env: { ...place, ...options.env },
    stdio: "pipe"
  })
  // It may end without reading.
  child.stdin.on("error", () => undefined).end(options.input ?? "")
  const process = `process ${child.pid}`
  const { heard, isOver, over, say } = hearing(`${command} ${args.join(" ")} (${process})`, process)
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => say(name, chunk))
  }
  child.once("error", (error) => over(Exit.die(error)))
  child.once("close", (code, signal) => over(Exit.succeed({ code, signal })))

  const signal = (name: NodeJS.Signals) => Effect.sync(() => void (isOver() || child.kill(name)))
  return { ...heard, pid: child.pid ?? 0, signal, end: (name) => Effect.zipRight(signal(name), heard.ended) }
}

/** Starts a program, which ends with the scope at the latest. */
export const start = (
  command: string,
  args: ReadonlyArray<string>,
  options: RunOptions = {}
): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => launch(command, args, options)),
    (running) => running.end("SIGKILL")
  )

/** Starts `tilld`. */
export const startTilld = (args: ReadonlyArray<string>, options: RunOptions = {}) =>
  start(process.execPath, [options.binary ?? binary, ...args], options)

/** Runs `tilld` as a process to its end: for exit codes as a shell sees them, streams, the working folder and signals. */
export const tilldProcess = (args: ReadonlyArray<string>, options: RunOptions = {}) =>
  Effect.scoped(Effect.flatMap(startTilld(args, options), (running) => running.ended))

type Command = Effect.Effect<number, { readonly _tag: string; readonly message: string }, Invocation>

/** Runs commands of the program in this process, as a process of their own with this environment does. */
const runningHere = async (
  env: RunOptions["env"],
  input: string,
  say: (stream: "stdout" | "stderr", text: string) => void
): Promise<(command: Command) => Effect.Effect<number>> => {
  const [{ StandardInput }, { runCommand }, { CopierProgram }, { LogSink }] = await Promise.all([
    import("../../src/commands/options.ts"),
    import("../../src/commands/runCommand.ts"),
    import("../../src/Backup/childProcess.ts"),
    import("../../src/Telemetry/LogSink.ts")
  ])
  const writer = (stream: "stdout" | "stderr") =>
    new Writable({ write: (chunk: Buffer, _, done) => done(void say(stream, chunk.toString())) })
  const surroundings = {
    env: { ...place, ...env },
    console: new Console({ stdout: writer("stdout"), stderr: writer("stderr") }),
    standardError: new LogSink((bytes) => {
      say("stderr", Buffer.from(bytes).toString())
      return bytes.length
    }),
    isForJournal: false
  }
  return (command) =>
    runCommand(command, surroundings).pipe(
      Effect.provideService(StandardInput, () => input),
      Effect.provideService(CopierProgram, pathToFileURL(join(root, built("chunks/copier.js"))))
    )
}

/**
 * Starts the daemon of a configuration in this process, which takes less than half of the time that one of its own takes.
 * It ends with the scope at the latest, in order; one that ended by an error fails the test. Whatever blocks this
 * process, as `spawnSync` does, blocks it too. The database's file is not to be opened but by SQLite: to close it
 * otherwise ends this process's locks.
 */
export const startDaemonHere = (config: string, env?: RunOptions["env"]): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<Running> => {
      const { runDaemon } = await import("../../src/main.ts")
      const name = `the daemon of ${config}`
      const { heard, over, say } = hearing(name, name)
      const run = await runningHere(env, "", say)
      const daemon = runDaemon({ path: config, env: { ...place, ...env } })
      // By the clock of the machine, in a test with a clock of its own too.
      const fiber = Effect.runFork(run(Effect.as(daemon, 0)))
      const codeOf = Exit.match({
        onSuccess: (code: number) => code,
        onFailure: (cause) => Number(!Cause.isInterruptedOnly(cause))
      })
      fiber.addObserver((exit) => over(Exit.succeed({ code: codeOf(exit), signal: null })))
      const signal = (name: NodeJS.Signals) =>
        name === "SIGTERM" || name === "SIGINT"
          ? Effect.asVoid(Fiber.interruptFork(fiber))
          : Effect.dieMessage(`a daemon in the test's process takes no ${name}`)
      return { ...heard, pid: process.pid, signal, end: (name) => Effect.zipRight(signal(name), heard.ended) }
    }),
    ({ end }) =>
      Effect.flatMap(end("SIGTERM"), ({ code, stderr }) =>
        code === 0 ? Effect.void : Effect.dieMessage(`a daemon ended with ${code}: ${stderr.slice(-2_000)}`)
      )
  )

/** Commands that seal the process, read the key on its standard input, answer with bytes or name the program. */
const needsProcess = /^(sandbox(?! pay)|backup -|secrets .*--new-key -|wallet (new|xpub|prove)|sweep sign|--)/

/** Runs a command of `tilld` in this process, to its end or that of the test. A daemon is one that is refused. */
export const tilldHere = (
  args: ReadonlyArray<string>,
  { env, input = "" }: Pick<RunOptions, "env" | "input"> = {}
): Effect.Effect<Ended> =>
  Effect.promise(async (signal) => {
    const { commandLine } = await import("../../src/commands/commandLine.ts")
    const text = { stdout: "", stderr: "" }
    const say = (stream: "stdout" | "stderr", said: string) => {
      text[stream] += said
    }
    const run = await runningHere(env, input, say)
    // By the clock of the machine, in a test with a clock of its own too. It ends with its test.
    const code = await Effect.runPromise(run(commandLine([process.execPath, "tilld", ...args])), { signal })
    return { code, signal: null, ...text }
  })

/** Runs a command of `tilld` to its end, in this process where nothing tells the difference. */
export const tilld = (args: ReadonlyArray<string>, options: RunOptions = {}): Effect.Effect<Ended> => {
  const { binary, cwd, env } = options
  const isPlain = [binary, cwd, env?.NODE_OPTIONS, env?.LD_PRELOAD].every((given) => given === undefined)
  return isPlain && !needsProcess.test(args.join(" ")) ? tilldHere(args, options) : tilldProcess(args, options)
}

/** Runs `tilld … --json`, which must succeed, and gives the one JSON value that it printed. */
export const tilldJson = <A>(args: ReadonlyArray<string>, options: RunOptions = {}) =>
  Effect.flatMap(tilld([...args, "--json"], options), ({ code, stderr, stdout }) =>
    code === 0
      ? Effect.sync(() => JSON.parse(stdout) as A)
      : Effect.dieMessage(`tilld ${args.join(" ")} ended with ${code}: ${stderr}`)
  )
