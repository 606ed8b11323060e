// Where builds lie: each in a folder of its own, named after its inputs, below dist/builds. dist/tilld.js names the current
// one. A daemon reads files of its build long after its start, so a former build stays until it is the eleventh.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const kept = 10

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))

/** The name of the build that `dist/tilld.js` starts; undefined where nothing is built. */
export const currentBuild = (dist) => {
  const stamp = join(dist, ".inputs")
  return existsSync(stamp) && existsSync(join(dist, "tilld.js")) ? readFileSync(stamp, "utf8") : undefined
}

/**
 * SIGUSR1, and `--inspect`, open Node's inspector: a port at which every local user reads the keys in memory. A handler
 * keeps Node from it, but a signal that came before the handler may still open it while the program is loaded: hence two
 * looks. Node 22.14 and later can leave the signal alone from the start, as `scripts/release/tilld` has them do.
 *
 * Node opens all files of the program at once, before any of it runs: only what imports it can say that it may not. The
 * version needs none of them.
 */
const entry = (name) => `#!/usr/bin/env node
import { fstatSync } from "node:fs"
process.on("SIGUSR1", () => undefined)
const fail = (code, text) => {
  const { dev, ino } = fstatSync(2)
  const priority = process.env.JOURNAL_STREAM === \`\${dev}:\${ino}\` ? "<3>" : ""
  console.error(\`\${priority}tilld: \${text}\`)
  process.exit(code)
}
const inspector = process.features.inspector ? await import("node:inspector") : undefined
const refuseInspector = () => {
  if (inspector?.url() === undefined) return
  fail(1, "Node's inspector is open, and whoever reaches it reads every key: start it again without --inspect, also in NODE_OPTIONS, and send it no SIGUSR1")
}
refuseInspector()
const isOfVersion = process.argv.length === 3 && process.argv[2] === "--version"
try {
  if (isOfVersion) console.log(${JSON.stringify(version)})
  else await import("./builds/${name}/tilld.js")
} catch (error) {
  if (error.code !== "EMFILE") throw error
  fail(2, "too few file descriptors to start: raise LimitNOFILE of the unit, or ulimit -n, to 1024 or more")
}
refuseInspector()
`

/**
 * Makes the build in the folder `from` the current one of `dist`. `from` holds what lies beside the builds (the client),
 * and in `program` the build itself. Every step leaves a program that starts.
 */
export const placeBuild = (from, dist, name) => {
  const builds = join(dist, "builds")
  mkdirSync(builds, { recursive: true })
  const former = currentBuild(dist)
  const place = join(builds, name)
  const discarded = join(from, "discarded")
  if (existsSync(place)) renameSync(place, discarded)
  renameSync(join(from, "program"), place)
  rmSync(discarded, { recursive: true, force: true })

  writeFileSync(join(from, "tilld.js"), entry(name), { mode: 0o755 })
  // Last: until then the former build is what is up to date.
  const files = [...readdirSync(from), ".inputs"]
  writeFileSync(join(from, ".inputs"), name)
  for (const file of files) renameSync(join(from, file), join(dist, file))
  rmSync(from, { recursive: true })
  for (const file of readdirSync(dist)) {
    if (file !== "builds" && !files.includes(file)) rmSync(join(dist, file), { recursive: true })
  }

  // A package holds the current build alone. This also sets the folder's time, by which the oldest is found.
  if (former !== undefined && former !== name && existsSync(join(builds, former))) {
    writeFileSync(join(builds, former, ".npmignore"), "*\n")
  }
  const others = readdirSync(builds)
    .filter((build) => build !== name)
    .map((build) => ({ build, since: statSync(join(builds, build)).mtimeMs }))
    .sort((a, b) => b.since - a.since)
  for (const { build } of others.slice(kept)) rmSync(join(builds, build), { recursive: true, force: true })
}
