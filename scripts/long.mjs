// What takes too long for npm test, or is a measure of speed: the suites of load and crashes, seeds of the simulation and
// of the fuzzing, and the floors of the bench. Prints what failed at the end. Names run these parts alone:
// npm run test:long -- suites sim
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import "./typescript.mjs"

process.chdir(fileURLToPath(new URL("..", import.meta.url)))
const { treeSeed } = await import("../test/lib/treeSeed.ts")
const seed = `${treeSeed()}`

// A seed that fails is named with the command that repeats it. The floors are ratios to what is measured beside them; of
// three tries the best counts.
const parts = {
  suites: ["node_modules/.bin/vitest", "run", "--mode", "long"],
  postgres: ["npm", "run", "test:postgres"],
  sim: ["npm", "run", "sim", "--", "--seeds", "300", "--seed", seed],
  simPostgres: ["npm", "run", "sim", "--", "--engine", "postgres", "--seeds", "60", "--seed", seed],
  fuzz: ["npm", "run", "test:fuzz", "--", "--count", "4000", "--seed", seed],
  bench: ["npm", "run", "bench", "--", "create", "reads", "start", "units", "paint", "--rows=100000", "--tries=3"]
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !Object.hasOwn(parts, name))
if (unknown.length > 0) {
  console.error(`${unknown.join(", ")}: not among ${Object.keys(parts).join(", ")}`)
  process.exit(2)
}
const results = (asked.length > 0 ? asked : Object.keys(parts)).map((name) => {
  const since = performance.now()
  const [command, ...args] = parts[name]
  const { status } = spawnSync(command, args, { stdio: "inherit", shell: process.platform === "win32" })
  return { name, ok: status === 0, seconds: ((performance.now() - since) / 1000).toFixed(0) }
})
for (const { name, ok, seconds } of results) console.log(`${ok ? "✓" : "✗"} ${name} (${seconds} s)`)
process.exitCode = results.every(({ ok }) => ok) ? 0 : 1
