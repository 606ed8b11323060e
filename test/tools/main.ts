import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { clientChecks } from "./clients.ts"
import { monitoringChecks } from "./monitoring.ts"

// `npm run test:tools`: the API document read by tools that others use. Spectral finds no error in it, the types that
// openapi-typescript makes of it take a request without its optional fields, and the conformance suite, sent through a proxy
// of Prism, meets no answer that is not as documented. Clients of several languages use a running daemon. The tools are
// installed here, beside the project's own packages.
// promtool and Grafana's schema read what `config` has for them. With arguments only the checks whose names have one of them:
// npm run test:tools -- rules

const root = fileURLToPath(new URL("../..", import.meta.url))
const here = join(root, "test/tools")
const bin = (tool: string) => join(here, "node_modules/.bin", tool)

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Runs a command to its end, and shows what it prints. */
const run = (command: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): boolean => {
  const { error, status } = spawnSync(command, args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...env }
  })
  if (error !== undefined) say(error.message)
  return status === 0
}

const folder = mkdtempSync(join(tmpdir(), "tilld-tools-"))
const document = join(folder, "openapi.json")

type Check = readonly [name: string, check: () => boolean | Promise<boolean>]

const all: ReadonlyArray<Check> = [
  ...monitoringChecks(root, folder),
  ["install", () => run("npm", ["ci", "--prefix", here, "--ignore-scripts", "--no-audit", "--no-fund"])],
  ["document", () => run(process.execPath, ["scripts/openapi.mjs", document])],
  ["Spectral", () => run(bin("spectral"), ["lint", document, "--ruleset", join(here, "spectral.yaml"), "--quiet"])],
  ["openapi-typescript", () => run("npx", ["openapi-typescript", document, "--output", join(folder, "api.d.ts")])],
  ...clientChecks(root, here, folder),
  [
    "Prism",
    () => run("npx", ["vitest", "run", "test/spec"], { TILLD_PRISM: bin("prism"), TILLD_PRISM_DOCUMENT: document })
  ]
]

const wanted = process.argv.slice(2)
const checks = all.filter(([name]) => wanted.length === 0 || wanted.some((part) => name.includes(part)))

try {
  let failed: string | undefined
  for (const [name, check] of checks) {
    const passed = await check()
    say(`${passed ? "✓" : "✗"} ${name}`)
    if (passed) continue
    failed = name
    break
  }
  say(failed === undefined ? `${checks.length} checks passed` : `FAILED: ${failed}`)
  process.exitCode = failed === undefined ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
