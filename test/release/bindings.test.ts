import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { expect, it } from "@effect/vitest"

const script = new URL("../../scripts/release/bindings.mjs", import.meta.url).href
const { bindingProblem }: { bindingProblem: (bytes: Buffer, arch: string, abi: number) => string | undefined } =
  await import(script)

it("a binding of another machine or another Node does not get into a release", () => {
  const sqlite = dirname(createRequire(import.meta.url).resolve("better-sqlite3/package.json"))
  const bytes = readFileSync(join(sqlite, "build/Release/better_sqlite3.node"))
  const abi = Number(process.versions.modules)
  const [other = "", elsewhere] = process.arch === "x64" ? ["arm64", "x64"] : ["x64", process.arch]
  expect(bindingProblem(bytes, process.arch, abi)).toBeUndefined()
  expect(bindingProblem(bytes, process.arch, abi + 1)).toBe(
    `was compiled for the ABI ${abi} of Node, and not for ${abi + 1}`
  )
  expect(bindingProblem(bytes, other, abi)).toBe(`is for ${elsewhere}, and not for ${other}`)
  expect(bindingProblem(Buffer.from("#!/bin/sh"), process.arch, abi)).toBe("is no 64-bit ELF file")
})
