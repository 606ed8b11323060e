import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { afterAll, beforeAll } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { type Ended, PATH, root } from "../lib/tilld.ts"

interface SealedOptions {
  readonly cwd: string
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** One process for commands of this suite that seal theirs: loading the program takes each of them ten times as long. */
export const sealedProcess = () => {
  let child: ChildProcess | undefined
  const waiting: Array<(exit: Exit.Exit<Ended>) => void> = []
  beforeAll(() => {
    const program = ["--import", "./scripts/typescript.mjs", "test/Collect/sealedCommands.ts"]
    child = spawn(process.execPath, program, { cwd: root, env: { PATH }, stdio: ["pipe", "pipe", "inherit"] })
    child.once("close", () => {
      for (const resume of waiting.splice(0)) resume(Exit.die("the sealed process has ended"))
    })
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) =>
      waiting.shift()?.(Exit.succeed(JSON.parse(line) as Ended))
    )
  })
  afterAll(() => void child?.kill("SIGKILL"))
  return (args: ReadonlyArray<string>, options: SealedOptions) =>
    Effect.async<Ended>((resume) => {
      waiting.push(resume)
      child?.stdin?.write(`${JSON.stringify({ args, ...options })}\n`)
    })
}
