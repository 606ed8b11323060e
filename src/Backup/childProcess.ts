/**
 * Copies and checks whole databases in a child process: either blocks for as long as the disk takes, and only a process
 * can be stopped meanwhile.
 */
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Context, Effect } from "effect"
import type { DatabaseFacts } from "./facts.ts"
import { type BackupFailed, failed } from "./files.ts"
import type { Seal } from "./seal.ts"

export type CopierRequest =
  | {
      readonly does: "copy"
      /** The database, which may be in use. */
      readonly source: string
      /** The backup, which must not exist. It is synced to disk. */
      readonly target: string
      readonly madeAt: string
    }
  | { readonly does: "check" | "verify"; readonly file: string }

/** A sound database. */
export interface Checked {
  /** Of the database, without its seal. */
  readonly bytes: number
  readonly facts: DatabaseFacts
  /** That of a copy; of a file that is checked, undefined where it has none. */
  readonly seal: Seal | undefined
}

export interface Damaged {
  readonly damage: ReadonlyArray<string>
}

export type Answer = Checked | Damaged | { readonly error: { readonly code: string; readonly message: string } }

/** The program of the child process. In the bundle, a separate file next to the main one. */
export class CopierProgram extends Context.Reference<CopierProgram>()("tilld/Backup/CopierProgram", {
  defaultValue: () => new URL("./copier.js", import.meta.url)
}) {}

/** Leaves SIGUSR1, which opens Node's inspector, alone from the start; older Nodes have no such flag. */
const flags = ["--disable-sigusr1"].filter((flag) => process.allowedNodeEnvironmentFlags.has(flag))

const ended = {
  error: { code: "", message: "its process has ended: see the kernel's log, there may be too little memory" }
}

/** Has a child process do the request; `what` says which failed. It is killed when this is interrupted. */
export const inChildProcess = (request: CopierRequest, what: string): Effect.Effect<Checked | Damaged, BackupFailed> =>
  Effect.flatMap(CopierProgram, (program) =>
    Effect.async<Answer>((resume) => {
      const child = fork(fileURLToPath(program), { execArgv: flags, stdio: ["ignore", "ignore", "inherit", "ipc"] })
      child
        .once("message", (answer: Answer) => resume(Effect.succeed(answer)))
        .once("error", ({ message }) => resume(Effect.succeed({ error: { code: "", message } })))
        .once("exit", () => resume(Effect.succeed(ended)))
        .send(request)
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  ).pipe(
    Effect.flatMap((answer) =>
      "error" in answer ? failed(what, answer.error.code, answer.error.message) : Effect.succeed(answer)
    )
  )
