import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Effect, Either, type Scope } from "effect"

export const root = fileURLToPath(new URL("../..", import.meta.url))

/** A process ended before it said what it was started for. */
class ProcessEnded extends Data.TaggedError("ProcessEnded")<{ readonly message: string }> {}

export interface Running<A> {
  readonly pid: number
  /** What it said. */
  readonly said: A
  /** Milliseconds from its start to that. */
  readonly millis: number
  /** Everything it has said, when it has ended by itself. */
  readonly ended: Effect.Effect<string>
}

const stop = (child: ChildProcess) =>
  Effect.async<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGTERM")
  }).pipe(Effect.timeoutOption("10 seconds"), Effect.ensuring(Effect.sync(() => child.kill("SIGKILL"))))

/**
 * Runs Node with these arguments until the scope closes, and waits for the first line of its output that `read` makes
 * something of. The environment is `env` and nothing else, so that no setting of the user's counts.
 */
export const start = <A>(
  args: ReadonlyArray<string>,
  read: (line: string) => A | undefined,
  env: Readonly<Record<string, string>> = {}
): Effect.Effect<Running<A>, ProcessEnded, Scope.Scope> =>
  Effect.gen(function* () {
    const started = performance.now()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] })),
      stop
    )
    let output = ""
    const ended = Effect.async<string>((resume) => {
      if (child.exitCode !== null) return resume(Effect.succeed(output))
      child.once("close", () => resume(Effect.succeed(output)))
    })
    return yield* Effect.async<Running<A>, ProcessEnded>((resume) => {
      for (const stream of [child.stdout, child.stderr]) {
        let rest = ""
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text
          const lines = `${rest}${text}`.split("\n")
          rest = lines.pop() ?? ""
          const [said] = lines.map(read).filter((one) => one !== undefined)
          if (said === undefined) return
          resume(Effect.succeed({ pid: child.pid ?? 0, said, millis: performance.now() - started, ended }))
        })
      }
      child.once("close", () => {
        resume(new ProcessEnded({ message: `${args.join(" ")} ended: ${output.slice(-2000)}` }))
      })
    })
  })

const parse = <A>(line: string): A | undefined => Either.getOrUndefined(Either.try(() => JSON.parse(line) as A))

/** Runs one of the benchmark's own files until the scope closes, and waits for the JSON line that it prints. */
export const startScript = <A>(file: string, args: ReadonlyArray<string>, nodeOptions: ReadonlyArray<string> = []) =>
  start<A>([...nodeOptions, "--import", "./scripts/typescript.mjs", join("test/bench", file), ...args], parse<A>)

/** Runs a command of tilld and gives the JSON that it prints. */
export const runTilld = <A>(args: ReadonlyArray<string>, env: Readonly<Record<string, string>>) =>
  Effect.scoped(Effect.map(start<A>(["dist/tilld.js", ...args, "--json"], parse<A>, env), ({ said }) => said))
