import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command } from "@effect/cli"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Invocation } from "../../src/Control/Invocation.ts"
import { formatHelp } from "../../src/commands/commandLine.ts"
import { tilld } from "../../src/commands.ts"

const run = Command.run(tilld, { name: "tilld", version: "0.1.0" })
const services = Layer.mergeAll(
  NodeContext.layer,
  CliConfig.layer({ showBuiltIns: false }),
  Layer.succeed(Invocation, { env: {}, user: "alice" })
)

/** The lines of a command's help page, as the program prints it where no terminal is. */
const help = Effect.fnUntraced(function* (...command: ReadonlyArray<string>) {
  const printed: Array<string> = []
  const console = yield* Effect.console
  const log = (text: unknown) => Effect.sync(() => void printed.push(String(text)))
  yield* Effect.withConsole(run(["node", "tilld", ...command, "--help"]), { ...console, log })
  return stripVTControlCharacters(formatHelp(printed.join("\n"), [...command, "--help"])).split("\n")
})

/** The lines of a section. */
const section = (lines: ReadonlyArray<string>, title: string): ReadonlyArray<string> => {
  const start = lines.indexOf(title)
  const end = lines.indexOf("", start)
  return start === -1 ? [] : lines.slice(start + 1, end === -1 ? undefined : end)
}

it.live("every command's help fits 100 columns, and says of every option and argument what it means", () =>
  Effect.gen(function* () {
    const top = yield* help()
    const commands = section(top, "COMMANDS").flatMap((line) => /^ {2}(\S+(?: \S+)*)/.exec(line)?.slice(1) ?? [])
    expect(commands).toEqual(expect.arrayContaining(["serve", "payments", "payments exceptions", "sandbox pay"]))
    expect(commands).toHaveLength(new Set(commands).size)
    // An option that may be repeated need not be given.
    expect((yield* help("keys", "create")).join(" ")).toContain("[--ip CIDR]...")
    const pages = yield* Effect.forEach(commands, (command) => help(...command.split(" ")), { concurrency: 1 })
    for (const [i, page] of [top, ...pages].entries()) {
      const name = `tilld ${commands[i - 1] ?? ""}`
      expect(page.length, name).toBeGreaterThan(5)
      expect(section(page, "USAGE")[0], name).toMatch(new RegExp(`^  ${name.trimEnd()}($| [[<-])`))
      expect(
        page.filter((line) => line.length > 100),
        name
      ).toEqual([])
      expect(page.join("\n"), name).not.toMatch(
        /A user-defined|A true or false|An integer|One of the following|This (setting|option) (is|may)/
      )
      const described = [...section(page, "ARGUMENTS"), ...section(page, "OPTIONS")]
      for (const [at, line] of described.entries()) {
        if (/^ {2}\S/.test(line)) expect(described[at + 1] ?? "", `${name}: ${line}`).toMatch(/^ {4}\S/)
      }
      if (i > 0 && section(page, "COMMANDS").length === 0) expect(described.length, name).toBeGreaterThan(1)
    }
  }).pipe(Effect.provide(services))
)

it("text that is not a help page stays as it is", () => {
  const text = `test key  svc_test_1\n\n${"curl ".repeat(40)}`
  expect(formatHelp(text)).toBe(text)
})
