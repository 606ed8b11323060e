import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { allOperations } from "../../src/Control/operations.ts"
import { PATH, root } from "../lib/tilld.ts"

const completion = (shell: string) => {
  const { status, stdout } = spawnSync(process.execPath, ["dist/tilld.js", "--completions", shell], {
    cwd: root,
    encoding: "utf8",
    env: { PATH }
  })
  expect(status, shell).toBe(0)
  return stdout
}

it("bash completes the words and the options of a command, and zsh and fish have their scripts", () => {
  const script = completion("bash")
  const complete = (...words: ReadonlyArray<string>) =>
    spawnSync(
      "bash",
      [
        "-c",
        `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tilld_bash_completions "$1" "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"; printf '%s\\n' "\${COMPREPLY[@]}"`,
        "bash",
        ...words
      ],
      { encoding: "utf8" }
    ).stdout.split("\n")
  expect(complete("tilld", "webh")).toContain("webhooks")
  expect(complete("tilld", "keys", "r")).toEqual(expect.arrayContaining(["revoke", "roll"]))
  expect(complete("tilld", "payments", "refunded", "--")).toEqual(
    expect.arrayContaining(["--amount", "--currency", "--chain", "--to", "--tx", "--note", "--json"])
  )
  for (const shell of ["bash", "zsh", "fish"]) expect(completion(shell)).not.toMatch(/wizard|log-level/)
  expect(completion("zsh")).toMatch(/^#compdef tilld/)
  expect(completion("fish")).toContain("complete -c tilld")
})

it("the man page has the command of each operation", () => {
  const page = readFileSync(join(root, "docs/tilld.1"), "utf8").replaceAll("\\-", "-")
  const commands = [...page.matchAll(/^\.B (tilld .*)$/gm)].map(([, usage = ""]) => usage)
  const missing = allOperations
    .map(({ name }) => name)
    .filter((name) => !commands.some((usage) => usage.startsWith(`tilld ${name}`)))
  // Parts of another command, and what commands ask for by themselves.
  expect(missing.sort()).toEqual([
    "accounts shop show",
    "addresses received",
    "sweep account",
    "sweep begin",
    "sweep owed",
    "sweep read",
    "sweep record",
    "tokens",
    "webhooks redeliver range",
    "webhooks secret --rotate"
  ])
})
