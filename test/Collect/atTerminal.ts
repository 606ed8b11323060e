/** A program at a terminal of its own, which a test reads and types at. */
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { Effect } from "effect"
import { PATH, root } from "../lib/tilld.ts"

/** Copies between a new terminal and the standard streams. The program's own standard streams are files. */
const relay = `
import os, pty, select, sys
out, err, program = sys.argv[1], sys.argv[2], sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), stream)
    os.execv(program[0], program)
inputs = [0, terminal]
while True:
    ready, _, _ = select.select(inputs, [], [])
    if terminal in ready:
        try:
            text = os.read(terminal, 65536)
        except OSError:
            text = b""
        if text == b"":
            break
        os.write(1, text)
    if 0 in ready:
        typed = os.read(0, 65536)
        if typed == b"":
            inputs.remove(0)
        else:
            os.write(terminal, typed)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

/** What a program asks, by the end of its prompt, and what is typed; what was shown before may decide it. */
export type Dialogue = ReadonlyArray<readonly [prompt: string, answer: string | ((shown: string) => string)]>

export interface AtTerminal {
  readonly code: number | null
  /** Everything that the terminal showed. */
  readonly shown: string
  readonly stdout: string
  readonly stderr: string
}

/** Runs tilld in a folder at a terminal, and answers what it asks. */
export const tilldAtTerminal = (folder: string, args: ReadonlyArray<string>, dialogue: Dialogue) =>
  Effect.async<AtTerminal>((resume) => {
    const [out, err] = [join(folder, "terminal.out"), join(folder, "terminal.err")]
    const program = [process.execPath, join(root, "dist/tilld.js"), ...args]
    const child = spawn("python3", ["-c", relay, out, err, ...program], { cwd: folder, env: { PATH }, stdio: "pipe" })
    let shown = ""
    let from = 0
    const left = [...dialogue]
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      shown += text
      for (let next = left[0]; next !== undefined; next = left[0]) {
        const [prompt, answer] = next
        const at = shown.indexOf(prompt, from)
        if (at === -1) return
        from = at + prompt.length
        left.shift()
        child.stdin.write(`${typeof answer === "string" ? answer : answer(stripVTControlCharacters(shown))}\r`)
      }
    })
    const textOf = (path: string) => (existsSync(path) ? readFileSync(path, "utf8") : "")
    child.once("close", (code) => resume(Effect.succeed({ code, shown, stdout: textOf(out), stderr: textOf(err) })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })
