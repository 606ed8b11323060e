import { type SpawnOptions, spawn } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import packageJson from "../../package.json" with { type: "json" }
import { root } from "../lib/processes.ts"

/** The line of the Node that runs this: releases of these tests are for it alone, which is one compilation. */
export const major = process.versions.node.split(".")[0] ?? ""
export const arch = process.arch
const debianArch = arch === "x64" ? "amd64" : arch

/** The version that is released, and one that comes after it. */
export const { version } = packageJson
export const next = "99.0.0-next.1"
export const deb = (of: string) => `tilld_${of}_${debianArch}.deb`

/** Everything that these tests make lies here. */
export const workshop = mkdtempSync(join(tmpdir(), "tilld-release-"))
/** The releases. */
export const out = join(workshop, "out")
export const clear = () => rmSync(workshop, { recursive: true, force: true })

export interface Ran {
  readonly status: number | null
  readonly output: string
}

export interface RanOptions extends SpawnOptions {
  /** What it reads on standard input. */
  readonly input?: string
}

/** Runs a command to its end; `output` is of both streams. */
export const ran = (command: string, args: ReadonlyArray<string>, options: RanOptions = {}): Promise<Ran> =>
  new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: "pipe" })
    const parts: Array<Buffer> = []
    child.stdout.on("data", (part) => parts.push(part))
    child.stderr.on("data", (part) => parts.push(part))
    child.stdin.on("error", () => undefined).end(options.input ?? "")
    child.once("error", ({ message }) => resolve({ status: null, output: message }))
    child.once("close", (status) => resolve({ status, output: Buffer.concat(parts).toString("utf8") }))
  })

/** The same for a command that must succeed; what it printed. */
export const must = async (command: string, args: ReadonlyArray<string>, options?: RanOptions): Promise<string> => {
  const { output, status } = await ran(command, args, options)
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}: ${output}`)
  return output
}

/** A checkout of its own, with its packages and the compiled bindings of the project. */
export interface Checkout {
  readonly folder: string
  readonly commit: (message: string) => Promise<void>
  readonly write: (path: string, change: (text: string) => string) => void
  /** `npm run release`, into a folder of its own. */
  readonly release: (out: string, ...args: ReadonlyArray<string>) => Promise<Ran>
  readonly build: () => Promise<string>
}

const author = ["-c", "user.name=Tests", "-c", "user.email=tests@example.org", "-c", "commit.gpgsign=false"]

/** Clones what is committed, with the changes that are not. */
export const checkout = async (name: string, from = root): Promise<Checkout> => {
  const folder = join(workshop, name)
  await must("git", ["clone", "-q", from, folder])
  if (from === root) {
    const changes = await must("git", ["diff", "HEAD", "--binary"], { cwd: root })
    if (changes !== "") await must("git", ["apply", "--index"], { cwd: folder, input: changes })
  }
  // Nothing writes to it: links do, where they can be had.
  if ((await ran("cp", ["-al", join(root, "node_modules"), folder])).status !== 0) {
    await must("cp", ["-a", join(root, "node_modules"), folder])
  }
  if (existsSync(join(root, "release/.bindings"))) {
    cpSync(join(root, "release/.bindings"), join(folder, "release/.bindings"), { recursive: true })
  }
  const build = () => must(process.execPath, ["scripts/build.mjs", "--quiet"], { cwd: folder })
  const commit = async (message: string) => {
    await must("git", ["add", "-A"], { cwd: folder })
    await must("git", [...author, "commit", "-q", "--allow-empty", "-m", message], { cwd: folder })
  }
  if (from === root) await commit("as it is")
  return {
    folder,
    build,
    commit,
    write: (path, change) => writeFileSync(join(folder, path), change(readFileSync(join(folder, path), "utf8"))),
    release: (out, ...args) => {
      const options = ["--arch", arch, "--node", major, "--out", out, ...args]
      // A maker may have headers of Node of his own: bindings that were compiled against these would be wrong, or none.
      const env = { ...process.env, npm_config_nodedir: "/nowhere" }
      return ran("npm", ["run", "-s", "release", "--", ...options], { cwd: folder, env })
    }
  }
}

/** Environment of someone who has Node, and neither npm, a compiler, nor another package. */
export const bare = (() => {
  const bin = join(workshop, "bin")
  mkdirSync(bin, { recursive: true })
  symlinkSync(process.execPath, join(bin, "node"))
  return { PATH: bin, HOME: workshop }
})()

/** What root has in its environment. */
export const rootEnvironment = [
  "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
  "HOME=/root",
  "DEBIAN_FRONTEND=noninteractive"
] as const

/** The folders of a file system like this machine's, whose changes are kept in the workshop, and what mounts it. */
export const overlay = (name: string) => {
  const [merged = "", upper = "", work = ""] = ["merged", "upper", "work"].map((part) => {
    const folder = join(workshop, name, part)
    mkdirSync(folder, { recursive: true })
    return folder
  })
  // In a mount namespace of its own, which unmounts it when its last process ends.
  const mount = `mount -t overlay overlay -o "lowerdir=/,upperdir=${upper},workdir=${work}" "${merged}"`
  return { merged, mount, upper }
}

/**
 * Runs a shell script as root in a file system like this machine's; `files` are in /given there. Undefined where this
 * machine allows no such thing.
 */
export const otherRoot = async (files: string): Promise<((script: string) => Promise<Ran>) | undefined> => {
  const { merged, mount, upper } = overlay("root")
  const inRoot = (script: string) =>
    ran("unshare", [
      "--mount",
      "sh",
      "-c",
      `${mount} &&
       exec chroot "${merged}" env -i ${rootEnvironment.join(" ")} sh -c "$1"`,
      "sh",
      script
    ])
  if ((await inRoot("true")).status !== 0) return undefined
  cpSync(files, join(upper, "given"), { recursive: true })
  return inRoot
}
