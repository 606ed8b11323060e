import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { describe, expect, it } from "vitest"
import { whySlow } from "./lib/regexSafety.ts"
import { root } from "./lib/tilld.ts"

const places = join(root, "src")

/** Regular expressions of the code whose time is not linear, and why no one can use that. */
const accepted: Readonly<Record<string, string>> = {
  "/-----BEGIN CERTIFICATE-----[\\s\\S]*?-----END CERTIFICATE-----/g": "the operator's own file",
  "/(--[a-z-]+ \\S+)\\.\\.\\./g": "this code's own text",
  "/\\[[^\\]]*\\]/g": "this code's own text",
  "/^ {2}- (.*?) {2,}(\\S.*)$/": "this code's own text",
  "/(\\.[0-9]{2}[0-9]*?)0+(?= )/": "an amount of at most 78 digits"
}

/** Patterns that the code puts together: each with what it makes. */
const composed: Readonly<Record<string, RegExp>> = {
  "Domain/Ids.ts new RegExp(`^${prefix}_[A-Za-z0-9_-]{22,43}$`)": /^pay_[A-Za-z0-9_-]{22,43}$/,
  "Chains/rpc/methods.ts new RegExp(`^0x[0-9a-fA-F]{${digits}}$`)": /^0x[0-9a-fA-F]{64}$/
}

const found = readdirSync(places, { encoding: "utf8", recursive: true })
  .filter((file) => /\.tsx?$/.test(file))
  .flatMap((file) => {
    const literals: Array<string> = []
    const calls: Array<string> = []
    const visit = (node: ts.Node): void => {
      if (ts.isRegularExpressionLiteral(node)) literals.push(node.text)
      const isCall = ts.isNewExpression(node) || ts.isCallExpression(node)
      if (isCall && node.expression.getText() === "RegExp") calls.push(`${file} ${node.getText()}`)
      ts.forEachChild(node, visit)
    }
    visit(ts.createSourceFile(file, readFileSync(join(places, file), "utf8"), ts.ScriptTarget.Latest, true))
    return [{ file, literals, calls }]
  })

const parsed = (literal: string): Pick<RegExp, "flags" | "source"> => {
  const end = literal.lastIndexOf("/")
  return { source: literal.slice(1, end), flags: literal.slice(end + 1) }
}

describe("every regular expression of the code", () => {
  it("takes linear time, or is listed above with its reason", () => {
    const slow = found.flatMap(({ file, literals }) =>
      literals.flatMap((literal) => {
        const why = literal in accepted ? undefined : whySlow(parsed(literal))
        return why === undefined ? [] : [`${file} ${literal}: ${why}`]
      })
    )
    expect(slow).toEqual([])
  })

  it("is looked at", () => {
    const literals = new Set(found.flatMap((one) => one.literals))
    expect(literals.size).toBeGreaterThan(200)
    expect(Object.keys(accepted).filter((literal) => !literals.has(literal))).toEqual([])
    expect(Object.keys(accepted).filter((literal) => whySlow(parsed(literal)) === undefined)).toEqual([])
    expect(found.flatMap(({ calls }) => calls).toSorted()).toEqual(Object.keys(composed).toSorted())
    expect(Object.values(composed).filter((regex) => whySlow(regex) !== undefined)).toEqual([])
  })
})

describe("a regular expression is found to be slow", () => {
  it.each([
    /0+$/,
    /\s+$/,
    /\.?0+$/,
    /(a+)+$/,
    /^a*a*$/,
    /^(\w+\s?)*$/,
    /"(?:[^"\\]|\\.)*"/,
    /BEGIN [A-Z ]*PRIVATE KEY/,
    /historical state .*available/i,
    /^a[\s\S]*b$/m,
    /\b.*x/,
    /(?<!b)a+$/,
    /(?<!\.)[.a]+$/
  ])("%s", (regex) => expect(whySlow(regex)).toBeDefined())
})

describe("a regular expression is found to be linear", () => {
  it.each([
    /^0+/,
    /(?<!0)0+$/,
    /\{(\w+)\}/g,
    /href="(ethereum:[^"]+)"/,
    /^Listening on .*:(\d+)$/m,
    /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i,
    /(^|,)\s*br\s*(,|$)/,
    /:.*/s,
    /[0-9a-f]{64}/
  ])("%s", (regex) => expect(whySlow(regex)).toBeUndefined())
})
