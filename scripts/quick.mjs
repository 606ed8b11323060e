// The inner loop: types, lint, sizes, and the suites that start no process and take seconds. `npm test` runs everything.
// Arguments go to vitest: npm run quick -- -t "rounds up"
import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const bin = join(root, "node_modules/.bin")

/** What a module imports that starts a process, or runs for as long as one. */
const starters = new Set(["node:child_process", "playwright-core", "playwright-core/lib", "../../src/Sandbox/Anvil.ts"])

const imports = (path) =>
  [
    ...readFileSync(path, "utf8").matchAll(/^(?:import|export) (?!type )[^"]*?from "([^"]+)"|\bimport\("([^"]+)"\)/gms)
  ].map(([, from, loaded]) => from ?? loaded)

const known = new Map()

/** Whether a module of `test/` starts a process, itself or by what it imports of `test/`. */
const starts = (path) => {
  const cached = known.get(path)
  if (cached !== undefined) return cached
  known.set(path, false)
  const found = imports(path).some((from) => {
    if (starters.has(from)) return true
    const next = resolve(dirname(path), from)
    return from.startsWith(".") && next.startsWith(join(root, "test/")) && starts(next)
  })
  known.set(path, found)
  return found
}

const suites = readdirSync(join(root, "test"), { recursive: true })
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => join(root, "test", name))
/** Simulations, long attacks, and what waits for real time, hashes passwords, signs for long or floods a server: half the time. */
const long = [
  "test/(fuzz|sim)/",
  "test/Auth/usage.test",
  "test/Chains/corroboration/(attacks.*|contradicted|corroborate|evidence|silence).test",
  "test/Checkout/manyStreams.http.test",
  "test/Collect/(oneWord|trouble).test",
  "test/Http/(bodies|turns).test",
  "test/Portal/(password|flood).test"
].map((pattern) => new RegExp(`/${pattern}`))
/** Milliseconds of each suite in the last `npm test` here: what took two seconds beside the others is left to it. */
const noted = join(root, "node_modules/.cache/suites.json")
const times = existsSync(noted) ? JSON.parse(readFileSync(noted, "utf8")) : {}
const isLong = (path) => times[relative(root, path)] > 2_000 || long.some((pattern) => pattern.test(path))
const quick = suites.filter((path) => !isLong(path) && !starts(path)).map((path) => relative(root, path))

const started = performance.now()
const run = (name, command, ...args) =>
  new Promise((done) => {
    const program = command === "node" ? process.execPath : join(bin, command)
    const child = spawn(program, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] })
    let output = ""
    child.stdout.on("data", (bytes) => (output += bytes))
    child.on("close", (code) => {
      console.log(`${code === 0 ? "✓" : "✗"} ${name} (${((performance.now() - started) / 1000).toFixed(0)} s)`)
      if (code !== 0) console.log(output)
      done(code === 0)
    })
  })

// They wait less than the whole: each further process would only load the program once more.
const forks = ["--poolOptions.forks.minForks=3", "--poolOptions.forks.maxForks=3"]
const suiteArgs = ["run", "--reporter=dot", ...forks, ...quick, ...process.argv.slice(2)]
const good = await Promise.all([
  run("types", "tsc", "--noEmit", "--incremental", "--tsBuildInfoFile", "node_modules/.cache/quick.tsbuildinfo"),
  run("lint", "biome", "check", "--error-on-warnings", "."),
  run("sizes", "node", "scripts/sizes.mjs"),
  run(`${quick.length} of ${suites.length} suites`, "vitest", ...suiteArgs)
])
process.exitCode = good.every(Boolean) ? 0 : 1
