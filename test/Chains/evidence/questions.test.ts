import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { questions } from "../../../src/Chains/evidence/questions.ts"

const source = join(import.meta.dirname, "../../../src")

/** Other exports of the files in `rpc/` that make calls: forms, decoders, and what sends a call. */
const noCalls = new Set([
  "Address",
  "badResponse",
  "Count",
  "decoder",
  "decodeTransaction",
  "hasSucceeded",
  "Hash",
  "isCapabilityRefused",
  "multicall3Address",
  "mayBeCapable",
  "noteCapability",
  "optional",
  "Quantity",
  "sendBatch",
  "sendInBatches",
  "transferTopic",
  "withReceipts",
  "Word"
])
const imported = /import \{([^}]*)\} from "[^"]*\/rpc\/(?:methods|\w+Methods|contractViews|capabilities)\.ts"/g

/** Each call that a file outside of `rpc/` imports, as `file call`. */
const made = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file) && !file.startsWith("Chains/rpc/"))
  .flatMap((file) =>
    [...readFileSync(join(source, file), "utf8").matchAll(imported)]
      .flatMap(([, names = ""]) => names.split(","))
      .map((name) => name.trim())
      .filter((name) => name !== "" && !name.startsWith("type ") && !noCalls.has(name))
      .map((name) => `${file} ${name}`)
  )

it("each call to a provider belongs to a question that says who must agree", () => {
  const answered = questions.flatMap(({ asked }) =>
    Object.entries(asked).flatMap(([file, calls]) => calls.map((call) => `${file} ${call}`))
  )
  expect(made.length).toBeGreaterThan(50)
  expect([...new Set(answered)].sort()).toEqual([...new Set(made)].sort())
})

it("no other file imports the calls in another way", () => {
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
  const whole = files.filter((file) =>
    /import \* as \w+ from "[^"]*\/rpc\//.test(readFileSync(join(source, file), "utf8"))
  )
  expect(whole).toEqual([])
})
