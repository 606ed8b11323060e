import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

const root = fileURLToPath(new URL("../..", import.meta.url))
const loader = new URL("../../scripts/typescript.mjs", import.meta.url).href

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

export interface Child {
  readonly process: ChildProcess
  /** Completes with the first line of standard output, or dies if there is none. */
  readonly firstLine: Effect.Effect<string>
  readonly ended: Effect.Effect<Ended>
}

/** The bundle as it ships. It is built anew where its sources have changed. */
export const buildBundle = (): string => {
  execFileSync(process.execPath, ["scripts/build.mjs", "--quiet"], { cwd: root })
  return "dist/tilld.js"
}

interface Options {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly input?: string
}

const collect = (child: ChildProcess, into: { stdout: string; stderr: string }) => {
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    into.stdout += text
  })
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    into.stderr += text
  })
}

/** Runs a file of the project, TypeScript or not, in a process of its own, which ends with the scope at the latest. */
export const spawnChild = (
  file: string,
  args: ReadonlyArray<string>,
  { cwd = root, env = {}, input = "" }: Options = {}
) =>
  Effect.acquireRelease(
    Effect.sync((): Child => {
      const child = spawn(
        process.execPath,
        [...(file.endsWith(".ts") ? ["--import", loader] : []), `${root}/${file}`, ...args],
        {
          cwd,
          env: { PATH: process.env.PATH, ...env }
        }
      )
      child.stdin.end(input)
      const output = { stdout: "", stderr: "" }
      collect(child, output)
      const ended = new Promise<Ended>((resolve) =>
        child.once("close", (code, signal) => resolve({ code, signal, ...output }))
      )
      const firstLine = new Promise<string | undefined>((resolve) => {
        const look = () => output.stdout.includes("\n") && resolve(output.stdout.split("\n")[0])
        child.stdout.on("data", look)
        void ended.then(() => resolve(undefined))
      })
      return {
        process: child,
        ended: Effect.promise(() => ended),
        firstLine: Effect.flatMap(
          Effect.promise(() => firstLine),
          (line) => (line === undefined ? Effect.dieMessage(`it said nothing: ${output.stderr}`) : Effect.succeed(line))
        )
      }
    }),
    (child) =>
      Effect.sync(() => {
        child.process.kill("SIGKILL")
      })
  )

/** As `spawnChild`, to its end. */
export const runChild = (file: string, args: ReadonlyArray<string>, options?: Options) =>
  Effect.scoped(Effect.flatMap(spawnChild(file, args, options), (child) => child.ended))
