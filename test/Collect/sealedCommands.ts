// Runs commands of tilld that seal their process, one after the other in this one. Each line of standard input is one, and each
// of standard output what it ended with. Started by sealedProcess.ts.
import { openSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect } from "effect"
import { tilldHere } from "../lib/processes.ts"

/** A file descriptor with what a command reads: this process's standard input is not its own. */
const descriptorOf = (input: string): string => {
  const path = join(tmpdir(), `tilld-sealed-${process.pid}`)
  writeFileSync(path, input, { mode: 0o600 })
  const descriptor = openSync(path, "r")
  rmSync(path)
  return `${descriptor}`
}

for await (const line of createInterface({ input: process.stdin })) {
  const { args, cwd, env = {}, input = "" } = JSON.parse(line)
  process.chdir(cwd)
  const given = args.map((arg: string, i: number) =>
    arg === "0" && args[i - 1] === "--seed-fd" ? descriptorOf(input) : arg
  )
  process.stdout.write(`${JSON.stringify(await Effect.runPromise(tilldHere(given, { env })))}\n`)
}
