// Completes package-lock.json, or checks it with --check.
//
// npm writes a lock entry for every optional platform package (say @esbuild/darwin-arm64), with its `os` and `cpu`,
// whatever machine it runs on, and `npm ci` of npm 11 refuses a lock that lacks one. A lock made against a mirror
// that does not carry all of them lacks them silently. So the entries are derived from the names.
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const systems = ["darwin", "win32", "linux", "android", "freebsd", "netbsd", "openbsd", "sunos", "aix", "openharmony"]

const cpus = {
  x64: "x64",
  amd64: "x64",
  arm64: "arm64",
  arm: "arm",
  ia32: "ia32",
  ppc64: "ppc64",
  riscv64: "riscv64",
  s390x: "s390x",
  loong64: "loong64",
  mips64el: "mips64el",
  wasm32: "wasm32"
}

const libcs = {
  gnu: "glibc",
  glibc: "glibc",
  gnueabihf: "glibc",
  musl: "musl",
  musleabihf: "musl"
}

/** npm's own registry says so of these, and some mirrors do not. */
const installScripts = ["fsevents"]

/** What a package name says of the platform that the package is for; {} when it is for all of them. */
export const platformOf = (name) => {
  const words = name.split(/[-/]/)
  const system = words.find((word) => systems.includes(word))
  const cpu = words.find((word) => Object.hasOwn(cpus, word))
  const libc = words.find((word) => Object.hasOwn(libcs, word))
  return {
    ...(cpu && { cpu: [cpus[cpu]] }),
    ...(system === "linux" && libc && { libc: [libcs[libc]] }),
    ...(system && { os: [system] })
  }
}

const exact = /^\d+\.\d+\.\d+(-[\w.]+)?$/

/** The place of the package that `require(name)` finds from `from`, as npm and Node search it. */
const find = (packages, from, name) => {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("node_modules/") - 1))) {
    const place = `${at}${at && "/"}node_modules/${name}`
    if (packages[place]) return place
    if (!at) return undefined
  }
}

/** The lock with everything it lacks, and one line for each thing it lacked. */
export const complete = (lock) => {
  const packages = structuredClone(lock.packages)
  const problems = []

  for (const [parent, { dev, optionalDependencies = {} }] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      const platform = platformOf(name)
      const found = find(packages, parent, name)
      if (found && (!exact.test(version) || packages[found].version === version)) {
        for (const [key, value] of Object.entries(platform)) {
          if (packages[found][key] || key === "libc") continue
          problems.push(`${found} lacks ${key} ${JSON.stringify(value)}`)
          packages[found][key] = value
        }
        // Wanted by something that is not only for development: then neither is this.
        if (!dev && packages[found].dev) {
          problems.push(`${found} is marked dev, but ${parent} is not`)
          delete packages[found].dev
        }
        continue
      }
      const place = found === undefined ? `node_modules/${name}` : `${parent}/node_modules/${name}`
      if (!exact.test(version) || !platform.cpu) {
        problems.push(`${place} (${version}) is missing, and its name does not say what to write: add it by hand`)
        continue
      }
      problems.push(`${place} ${version} is missing`)
      const { cpu, libc, os } = platform
      // In the order in which npm writes them.
      packages[place] = { version, cpu, ...(dev && { dev }), ...(libc && { libc }), optional: true, ...(os && { os }) }
    }
  }

  for (const [place, entry] of Object.entries(packages)) {
    if (entry.resolved && !entry.link) {
      problems.push(`${place} names a registry: ${entry.resolved}`)
      delete entry.resolved
    }
    if (!entry.hasInstallScript && installScripts.some((name) => place.endsWith(`node_modules/${name}`))) {
      problems.push(`${place} lacks hasInstallScript`)
      entry.hasInstallScript = true
    }
  }

  return { problems, lock: { ...lock, packages: sorted(packages) } }
}

/** npm's own order of the packages. */
const sorted = (packages) => Object.fromEntries(Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, "en")))

/** The name of the package at a place. */
const nameIn = (place) => place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length)

/**
 * Packages that run a script when they are installed and package.json's allowScripts does not name, and the reverse:
 * npm 11 warns of the first and npm 12 does not run them.
 */
export const allowScriptsProblems = (lock, { allowScripts = {} }) => {
  const needed = new Set(
    Object.entries(lock.packages)
      .filter(([, entry]) => entry.hasInstallScript)
      .map(([place]) => nameIn(place))
  )
  return [
    ...[...needed].filter((name) => !(name in allowScripts)).map((name) => `allowScripts lacks ${name}`),
    ...Object.keys(allowScripts)
      .filter((name) => !needed.has(name))
      .map((name) => `allowScripts names ${name}, which has no install script`)
  ]
}

/** Packages that npm would install without a hash to hold them against. */
export const integrityProblems = (lock) =>
  Object.entries(lock.packages)
    .filter(
      ([place, { integrity, link }]) => place !== "" && !link && !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? "")
    )
    .map(
      ([place, { version }]) =>
        `${place} has no integrity hash: write what npm view ${nameIn(place)}@${version} dist.integrity says`
    )

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), "utf8"))
  const { problems, lock } = complete(read("package-lock.json"))
  const scripts = allowScriptsProblems(lock, read("package.json"))
  const hashes = integrityProblems(lock)
  const check = process.argv.includes("--check")

  if (check) {
    for (const problem of problems) console.log(`package-lock.json: ${problem}`)
    if (problems.length > 0) console.log("Run node scripts/lockfile.mjs")
  } else if (problems.length > 0) {
    writeFileSync(new URL("../package-lock.json", import.meta.url), `${JSON.stringify(lock, null, 2)}\n`)
    console.log(`package-lock.json: ${problems.length} corrections`)
  }
  for (const problem of scripts) console.log(`package.json: ${problem}`)
  for (const problem of hashes) console.log(`package-lock.json: ${problem}`)
  process.exitCode = scripts.length + hashes.length > 0 || (check && problems.length > 0) ? 1 : 0
}
