import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, it } from "@effect/vitest"
import { cruise } from "dependency-cruiser"
import extractOptions from "dependency-cruiser/config-utl/extract-depcruise-options"
import { root } from "./lib/processes.ts"

const config = join(root, "config/tools/dependency-cruiser.cjs")

/** The rules that a tree breaks, of the files given by their paths below src. */
const broken = async (files: Readonly<Record<string, string>>): Promise<ReadonlyArray<string>> => {
  const folder = mkdtempSync(join(tmpdir(), "tilld-boundaries-"))
  try {
    for (const [path, text] of Object.entries(files)) {
      const file = join(folder, "src", path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
    const { output } = await cruise(["src"], { ...(await extractOptions(config)), baseDir: folder })
    if (typeof output === "string") throw new Error(output)
    const { summary } = output
    return [...new Set(summary.violations.map(({ rule }) => rule.name))].sort()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

it("rooms may use the rooms below them", async () => {
  expect(
    await broken({
      "Payments.ts": 'import { a } from "./Chains/ledger/a.ts"\nexport const b = a\n',
      "Chains/ledger/a.ts": 'import { c } from "../../Domain/c.ts"\nexport const a = c\n',
      "Domain/c.ts": "export const c = 1\n"
    })
  ).toEqual([])
})

it("a circle of rooms is refused, though no file is in a circle and one of its imports is of a type", async () => {
  expect(
    await broken({
      "Payments/pay.ts": 'import { head } from "../Chains/watcher/head.ts"\nexport const pay = head\n',
      "Payments/Rules.ts": "export type Rules = number\n",
      "Chains/watcher/head.ts": "export const head = 1\n",
      "Chains/watcher/tick.ts": 'import type { Rules } from "../../Payments/Rules.ts"\nexport const tick: Rules = 1\n'
    })
  ).toEqual(["Chains/watcher-uses-only-rooms-below-it"])
})

it("a room uses no folder that it is in, and a file of no room is refused", async () => {
  expect(
    await broken({
      "Webhooks/sign.ts": "export const sign = 1\n",
      "Webhooks/queue/due.ts": 'import { sign } from "../sign.ts"\nexport const due = sign\n',
      "Lounge/sofa.ts": 'import { sign } from "../Webhooks/sign.ts"\nexport const sofa = sign\n'
    })
  ).toEqual(["Webhooks/queue-uses-only-rooms-below-it", "every-file-has-a-room"])
})

it("what the daemon runs imports nothing that handles keys", async () => {
  const collect = { "Collect/sign.ts": "export const sign = 1\n" }
  const using = 'import { sign } from "./Collect/sign.ts"\nexport const use = sign\n'
  expect(await broken({ ...collect, "commands/sweep.ts": using.replace("./", "../") })).toEqual([])
  for (const room of ["Control", "Doctor", "Payments", "Chains"]) {
    expect(await broken({ ...collect, [`${room}/a.ts`]: using.replace("./", "../") })).toEqual([
      `${room}-uses-only-rooms-below-it`
    ])
  }
  // Composition is above all rooms, and has to keep away by itself.
  const composed = ["App.ts", "main.ts", "Server.ts", "Portal.ts", "commands.ts", "commands/serving.ts"]
  const sources = composed.map((file) => readFileSync(join(root, "src", file), "utf8"))
  expect(sources.filter((source) => source.includes("/Collect/"))).toEqual([])
})

it("nothing uses Effect.cached: an interruption of the first caller would reach all", () => {
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.tsx?$/.test(name)
  )
  const cached = sources.filter((name) => /\bcached\w*\(/.test(readFileSync(join(root, "src", name), "utf8")))
  expect([sources.length > 500, cached]).toEqual([true, []])
})

it("nothing sets the cost of a password's hash", () => {
  const src = join(root, "src")
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file))
  const named = files.filter((file) => readFileSync(join(src, file), "utf8").includes("PasswordCost"))
  expect(named).toEqual(["Auth/passwordHash.ts"])
})

/** Files that make a server themselves, and why none of the daemon's clients reaches it. */
const servers = {
  "Http/listener.ts": "every HTTP server of the daemon: pieces in turns, counted, with time limits",
  "Sandbox/Receiver.ts": "the HTTPS receiver of `tilld sandbox`, on a developer's machine",
  "Sandbox/freePort.ts": "finds a free port, and serves nothing"
}

it("one function makes every HTTP server of the daemon", () => {
  const src = join(root, "src")
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file))
  const makes = /\bcreate(Secure)?Server\b|\bnew (\w+\.)?(Http|Https|Net)?Server\(/
  expect(files.filter((file) => makes.test(readFileSync(join(src, file), "utf8"))).sort()).toEqual(Object.keys(servers))
})
