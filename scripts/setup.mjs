// Installs what is missing, and makes the types of the client; every npm script runs it first. It costs a few milliseconds when there is nothing to do,
// and writes to standard error only, since `npm run … -- --json` prints its result on standard output.
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { bringClientTypes } from "./clientTypes.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const require = createRequire(import.meta.url)

const fail = (message) => {
  console.error(message)
  process.exit(2)
}

const [major, minor] = process.versions.node.split(".").map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  fail(`tilld needs Node 20.19 or newer; this is ${process.versions.node} (${process.execPath}). Install Node 24 LTS.`)
}

const readJson = (path) => {
  try {
    return JSON.parse(readFileSync(join(root, path), "utf8"))
  } catch {
    return undefined
  }
}

const runsHere = ({ os, cpu }) =>
  (!os || os.includes(process.platform)) && (!cpu || cpu.includes(process.arch) || cpu.includes("wasm32"))

/** Whether node_modules is what the lock file says, by the list that npm leaves there. */
const installed = () => {
  const wanted = readJson("package-lock.json")
  const present = readJson("node_modules/.package-lock.json")?.packages
  if (!wanted || !present) return false

  // package.json was edited since the lock file was written.
  const manifest = readJson("package.json")
  for (const kind of ["dependencies", "devDependencies"]) {
    const locked = wanted.packages[""][kind] ?? {}
    const edited = Object.entries(manifest[kind] ?? {})
    if (edited.length !== Object.keys(locked).length) return false
    if (edited.some(([name, version]) => locked[name] !== version)) return false
  }
  // Copied from a machine of another kind.
  if (Object.values(present).some((entry) => !runsHere(entry))) return false

  return Object.entries(wanted.packages).every(([place, entry]) => {
    if (place === "") return true
    // A registry may lack an optional package, and it may have failed to build: nothing to install again for.
    if (!present[place]) return entry.optional === true
    return present[place].version === entry.version && existsSync(join(root, place, "package.json"))
  })
}

/**
 * Node 24 from 24.19 on aborts in addons that were compiled against its own ObjectWrap; object-wrap.h, which is compiled
 * into better-sqlite3 then, says how. Builds that are downloaded were made with older headers.
 */
const patched = major === 24 && minor >= 19 && process.platform !== "win32"

/** The native bindings that do not load on this Node, with the reason of each. */
const brokenBindings = () => {
  const broken = []
  const attempt = (name, load) => {
    try {
      load()
    } catch (error) {
      broken.push(`${name}: ${error.message.split("\n")[0]}`)
    }
  }
  // The binding of each by itself: it is what may be missing, and half as much to load as the package.
  attempt("better-sqlite3", () => {
    const binding = require.resolve("better-sqlite3/build/Release/better_sqlite3.node")
    require(binding)
    if (patched && readFileSync(binding).includes("RemoveEnvironmentCleanupHook")) {
      throw new Error("compiled against an ObjectWrap that aborts, see scripts/object-wrap.h")
    }
  })
  attempt("secp256k1", () => {
    const entry = require.resolve("secp256k1")
    createRequire(entry)("node-gyp-build")(dirname(entry))
  })
  return broken
}

/** Runs npm with the Node that runs this, shows its output on standard error, and resolves to its code and output. */
const npm = async (...args) => {
  const { spawn } = await import("node:child_process")
  return new Promise((resolve) => {
    const cli = process.env.npm_execpath
    const [command, before] = cli?.endsWith("npm-cli.js") ? [process.execPath, [cli]] : ["npm", []]
    const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` }
    // Headers that lie beside this Node fit it and need no download; the user's setting may be for another Node.
    const prefix = dirname(dirname(process.execPath))
    if (existsSync(join(prefix, "include/node/node_api.h"))) env.npm_config_nodedir = prefix
    if (patched) env.CXXFLAGS = `${env.CXXFLAGS ?? ""} -include "${join(root, "scripts/object-wrap.h")}"`

    console.error(`> npm ${args.join(" ")}`)
    const child = spawn(command, [...before, ...args], {
      cwd: root,
      env,
      shell: command === "npm" && process.platform === "win32",
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (bytes) => {
        output += bytes
        process.stderr.write(bytes)
      })
    }
    child.on("error", (error) => resolve({ code: 1, output: error.message }))
    child.on("close", (code) => resolve({ code: code ?? 1, output }))
  })
}

const buildFailed = (detail) =>
  fail(`${detail}

A native package could not be built for Node ${process.versions.node} on ${process.platform}-${process.arch}.
It needs python3, make and a C++ compiler (Debian, Ubuntu: apt-get install python3 make g++; macOS: xcode-select
--install), and npm's ignore-scripts setting off. Then run the command again.`)

if (process.argv[2] === "--bindings") {
  const broken = brokenBindings()
  if (broken.length > 0) fail(broken.join("\n"))
  process.exit(0)
}

if (!installed()) {
  console.error("Installing the packages that tilld is built from: a minute or two, this once.")
  let result = await npm("ci", "--include=dev", "--no-audit", "--no-fund")
  if (result.code !== 0 && /\bEUSAGE\b/.test(result.output)) {
    console.error("npm ci refuses package-lock.json (see above): installing with npm install, which may change it.")
    result = await npm("install", "--include=dev", "--no-audit", "--no-fund")
  }
  if (result.code !== 0 && /node-gyp|gyp ERR/.test(result.output)) buildFailed("npm could not install the packages.")
  if (result.code !== 0) fail("npm could not install the packages; its messages above say why.")
}

if (brokenBindings().length > 0) {
  // Built for another version of Node.
  console.error(`Compiling SQLite and secp256k1 for Node ${process.versions.node}: a minute or two, this once.`)
  await npm("rebuild", "better-sqlite3", "secp256k1")
  // In a process of its own: a binding that failed to load once fails again in this one, whatever was built since.
  const { spawnSync } = await import("node:child_process")
  const check = spawnSync(process.execPath, [fileURLToPath(import.meta.url), "--bindings"], { encoding: "utf8" })
  if (check.status !== 0) buildFailed(check.stderr.trim())
}

await bringClientTypes(root)
