// Counts tests, and what each suite took, into the file of TILLD_TEST_COUNTS, after each suite too, so that the count outlives a
// crash of vitest. The times are kept: the next run begins with the slowest.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))

const count = (modules, errors) => {
  const counts = { passed: 0, failed: errors, skipped: 0, left: {} }
  for (const module of modules) {
    const tests = [...module.children.allTests()]
    for (const test of tests) {
      const { note = "", state } = test.result()
      // What the system lacks, see test/lib/needs.ts.
      if (state === "skipped" && note.startsWith("needs ")) {
        counts.left[note] = (counts.left[note] ?? 0) + 1
        continue
      }
      // A test that was still pending when its process ended did not pass.
      counts[state in counts ? state : "failed"]++
    }
    // A suite that does not load or whose hooks fail may have no failed test, and an empty one no test at all.
    const broken = module.errors().length + [...module.children.allSuites()].flatMap((suite) => suite.errors()).length
    if (broken > 0 || tests.length === 0) counts.failed++
  }
  return counts
}

/** How long each suite took, slowest first, in milliseconds: to load it, and to run it. */
const timesOf = (modules) =>
  modules
    .map((module) => {
      const { collectDuration, duration } = module.diagnostic()
      return { name: relative(root, module.moduleId), loading: collectDuration, running: duration }
    })
    .sort((a, b) => b.running - a.running)

const kept = join(root, "node_modules/.cache/suites.json")

const keep = (times) => {
  let before = {}
  try {
    before = JSON.parse(readFileSync(kept, "utf8"))
  } catch {
    // The first run here.
  }
  mkdirSync(dirname(kept), { recursive: true })
  const now = Object.fromEntries(times.map(({ loading, name, running }) => [name, Math.round(loading + running)]))
  writeFileSync(kept, JSON.stringify({ ...before, ...now }))
}

export default class CountingReporter {
  ended = []

  onTestModuleEnd(module) {
    this.ended.push(module)
    this.write(this.ended, 0, false)
  }

  onTestRunEnd(modules, unhandledErrors, reason) {
    this.write(modules, unhandledErrors.length, reason !== "interrupted")
    if (reason !== "interrupted") keep(timesOf(modules))
  }

  write(modules, errors, done) {
    const counts = { ...count(modules, errors), times: timesOf(modules), done }
    writeFileSync(process.env.TILLD_TEST_COUNTS, JSON.stringify(counts))
  }
}
