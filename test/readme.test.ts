import { spawnSync } from "node:child_process"
import { createHmac } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { FiveChains, makeHome } from "./lib/daemon.ts"
import { temporaryFolder } from "./lib/store.ts"
import { PATH, root, startTilld, tilld, tilldJson } from "./lib/tilld.ts"

const readme = readFileSync(join(root, "README.md"), "utf8")

/** The code blocks of a language under a heading. */
const blocks = (heading: string, language: string): ReadonlyArray<string> => {
  const section = readme.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? ""
  return [...section.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].flatMap(([, found, code = ""]) =>
    found === language ? [code] : []
  )
}

describe("README", () => {
  it.scopedLive("its API commands work as they stand", () =>
    Effect.gen(function* () {
      const home = yield* makeHome({ chains: yield* FiveChains })
      const rates = { EUR: "1.10", MATIC: "0.5" }
      const env = Object.fromEntries(
        Object.entries(rates).map(([symbol, price]) => [`TILLD_RATES__FIXED__${symbol}`, price])
      )
      const running = yield* startTilld(["serve", "--config", home.config], { env })
      const listening = JSON.parse(yield* running.line(/"listening"/))
      // A quote needs a gas price, which comes with the first look at the chain.
      yield* running.line((line) => line.includes("first head") && line.includes("polygon"))
      const { key } = yield* tilldJson<{ key: string }>(
        ["keys", "create", "--mode", "test", "--name", "readme", "--config", home.config],
        { env }
      )

      const commands = blocks("The API by example", "sh")
      expect(commands.length).toBeGreaterThan(3)
      const script = commands.map((command) => `${command}\necho`).join("\n")
      const { status, stderr, stdout } = spawnSync("bash", ["-euo", "pipefail", "-c", script], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          PATH,
          KEY: key,
          TILLD: `http://127.0.0.1:${listening.annotations.port}`
        }
      })
      expect(stderr).toBe("")
      expect(status).toBe(0)
      const answers = stdout
        .replaceAll("}{", "}\n{")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
      expect(answers.filter((answer) => "error" in answer)).toEqual([])
      const [example = ""] = blocks("The API by example", "json")
      expect(Object.keys(answers[0])).toEqual(Object.keys(JSON.parse(example)))
      const ids = answers.map((answer) => String(answer.id ?? "list").replace(/_.*/, ""))
      expect(ids).toEqual(["pay", "pay", "list", "list", "wh", "quote"])
    }).pipe(Effect.provide(FiveChains.layer))
  )

  it("its verification takes a right signature and no other", async () => {
    const [code = ""] = blocks("Verify a webhook", "js")
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const file = join(yield* temporaryFolder, "verify.mjs")
          writeFileSync(file, code)
          const { isFromTilld } = yield* Effect.promise(() => import(pathToFileURL(file).href))
          const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
          const body = Buffer.from('{"id":"evt_1"}')
          const signature = createHmac("sha256", secret).update(body).digest("hex")
          expect(isFromTilld(body, signature, secret)).toBe(true)
          expect(isFromTilld(Buffer.from('{"id":"evt_2"}'), signature, secret)).toBe(false)
          expect(isFromTilld(body, signature.toUpperCase(), secret)).toBe(false)
          expect(isFromTilld(body, undefined, secret)).toBe(false)
        })
      )
    )
  })

  it("every npm script and every command that it names is there", async () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    const named = [...readme.matchAll(/npm (?:run )?([a-z]+)/g)].map(([, name = ""]) => name)
    for (const name of named.filter((each) => each !== "prune")) expect(scripts).toHaveProperty(name)

    const commands = [...readme.matchAll(/^\| `tilld ([^`]+)` +\|/gm)].flatMap(([, usage = ""]) => {
      const [group = "", ...rest] = usage.replaceAll("\\|", "|").split(" ")
      const leaves = rest
        .join(" ")
        .split("|")
        .map((leaf) => leaf.trim())
      return leaves.map((leaf) => [group, leaf].filter((word) => word !== ""))
    })
    expect(commands.length).toBeGreaterThan(8)
    const failed = await Effect.runPromise(
      Effect.filter(commands, (command) => Effect.map(tilld([...command, "--help"]), ({ code }) => code !== 0), {
        concurrency: 2
      })
    )
    expect(failed).toEqual([])
  })
})
