// A build, then every suite, and the static checks beside them. The last line is always "N passed, N failed": each check
// and each test counts as one. Arguments go to vitest: npm test -- test/Domain -t "rounds up"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import "./typescript.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const started = performance.now()
const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`

const bin = join(root, "node_modules/.bin")
const env = { ...process.env, PATH: `${bin}${delimiter}${dirname(process.execPath)}${delimiter}${process.env.PATH}` }
const windows = process.platform === "win32"

/** What is running in a process group of its own: it has processes that would outlive it. */
let group
const signal = (name) => {
  if (group !== undefined) process.kill(windows ? group : -group, name)
}

/** Resolves to whether the command succeeded, and what it printed. `limit`: milliseconds after which all of it is ended. */
const run = (command, args, { limit, ...options } = {}) =>
  new Promise((resolve) => {
    const detached = limit !== undefined && !windows
    const child = spawn(command, args, { cwd: root, env, shell: windows, detached, ...options })
    if (limit !== undefined) {
      group = child.pid
      const timer = setTimeout(signal, limit, "SIGKILL")
      child.on("close", () => {
        clearTimeout(timer)
        try {
          // A process that outlives the command would keep a core busy.
          signal("SIGKILL")
        } catch {
          // The group is empty, as it should be.
        }
        group = undefined
      })
    }
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (bytes) => (output += bytes))
    child.on("error", (error) => resolve({ ok: false, output: error.message }))
    child.on("close", (code) => resolve({ ok: code === 0, output }))
  })

const checks = [
  ["types and effects", "node", "--max-semi-space-size=64", "scripts/effect.mjs"],
  ["lint", "biome", "check", "--error-on-warnings", "."],
  ["boundaries", "depcruise", "--config", "config/tools/dependency-cruiser.cjs", "src"],
  ["unused", "knip", "--config", "config/tools/knip.json"],
  ["lock file", "node", "scripts/lockfile.mjs", "--check"],
  ["sizes", "node", "scripts/sizes.mjs"],
  ...(existsSync(join(root, "scripts/contracts.mjs"))
    ? [["contracts", "node", "scripts/contracts.mjs", "--check"]]
    : []),
  ["api document", "node", "scripts/openapi.mjs", "--lint"],
  ["generated documentation", "node", "scripts/docs.mjs", "--check"]
]

let passed = 0
let failed = 0
const failures = []

const check = async ([name, command, ...args]) => {
  const since = performance.now()
  const { ok, output } = await run(command, args)
  console.log(`${ok ? "✓" : "✗"} ${name} (${seconds(since)})`)
  if (ok) {
    passed++
  } else {
    failed++
    failures.push(name)
    console.log(`${output.trimEnd()}\n`)
  }
}

// An interrupt reaches vitest too; the count is printed all the same.
for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => signal(name))

try {
  const { isOfRequired, missing, packages } = await import("../test/lib/programs.ts")
  const { browserPlace } = await import("../test/lib/browserPlace.ts")
  const { executablePath, from } = browserPlace()
  console.log(`Node ${process.version}; Chromium of ${from}: ${executablePath}`)
  const lacking = missing().map((program) => `${program} (apt-get install ${packages[program]})`)
  if (lacking.length > 0) console.log(`Missing here: ${lacking.join(", ")}`)
  // Suites start what it builds.
  await check(["build", "node", "scripts/build.mjs", "--quiet"])
  const allChecks = (async () => {
    for (const next of checks) await check(next)
  })()

  const since = performance.now()
  const folder = mkdtempSync(join(tmpdir(), "tilld-test-"))
  const report = join(folder, "counts.json")
  const args = process.argv.slice(2)
  const vitest = ["run", "--allowOnly=false", "--reporter=default", "--reporter=./scripts/vitest-reporter.mjs"]
  const { ok } = await run("vitest", [...vitest, ...args], {
    stdio: ["ignore", "inherit", "inherit"],
    // A loop without end in a test is beyond vitest's own time-outs.
    limit: 40 * 60_000,
    env: { ...env, TILLD_TEST_COUNTS: report }
  })
  const counts = existsSync(report)
    ? JSON.parse(readFileSync(report, "utf8"))
    : { passed: 0, failed: 0, skipped: 0, left: {}, times: [], done: false }
  rmSync(folder, { recursive: true, force: true })

  passed += counts.passed
  failed += counts.failed
  if (counts.failed > 0) failures.push(`${counts.failed} of the tests`)

  const alsoFailed = (count, why) => {
    failed += count
    failures.push(why)
  }
  // A filter by name skips the rest on purpose.
  const filtered = args.some((arg) => arg === "-t" || arg.startsWith("--testNamePattern"))
  if (counts.skipped > 0 && !filtered) alsoFailed(counts.skipped, `${counts.skipped} skipped tests`)
  for (const [reason, count] of Object.entries(counts.left)) {
    const text = `${count} ${count === 1 ? "test" : "tests"} ${reason}`
    console.log(`Not run here: ${text}`)
    if (process.env.CI === "true" && isOfRequired(reason)) alsoFailed(1, text)
  }
  if (!counts.done) alsoFailed(1, "vitest did not finish")
  else if (counts.passed + counts.failed === 0) alsoFailed(1, "no test ran")
  else if (!ok && counts.failed === 0) alsoFailed(1, "vitest exited with an error")
  await allChecks
  // Of all worker processes together: several run at once.
  const sum = (what) => `${(counts.times.reduce((all, time) => all + time[what], 0) / 1000).toFixed(0)} s`
  const slowest = counts.times.slice(0, 20)
  console.log(`Loading suites took ${sum("loading")}, running them ${sum("running")}; the slowest ${slowest.length}:`)
  for (const { name, running } of slowest) console.log(`  ${(running / 1000).toFixed(1).padStart(6)} s  ${name}`)
  console.log(`Suites took ${seconds(since)}, everything ${seconds(started)}`)
} catch (error) {
  failed++
  failures.push("scripts/test.mjs")
  console.log(error.stack)
} finally {
  if (failures.length > 0) console.log(`Failed: ${failures.join(", ")}`)
  process.exitCode = failed > 0 ? 1 : 0
  console.log(`${passed} passed, ${failed} failed`)
}
