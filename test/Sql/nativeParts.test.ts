import { expect, it } from "vitest"
import { nativeProblem } from "../../src/Sql/nativeParts.ts"
import { unusableFiles } from "../../src/Sql/StoreUnusable.ts"

it.each([
  new Error("Could not locate the bindings file. Tried:\n → /a\n → /b"),
  Object.assign(new Error("wrong ELF class"), { code: "ERR_DLOPEN_FAILED" }),
  "Error: Cannot find module './elliptic'\n    at require"
])("a native part that cannot be loaded is one line, wherever it is met: %s", (cause) => {
  expect(nativeProblem(cause)).toMatch(/^a native part.* run tilld with a Node .*$/)
  expect(unusableFiles(cause, [], "Cannot work")).toMatchObject({
    _tag: "StoreUnusable",
    message: nativeProblem(cause)
  })
})

it("any other error is not reported as one of a native part", () => {
  expect(nativeProblem(new Error("disk I/O error"))).toBeUndefined()
})
