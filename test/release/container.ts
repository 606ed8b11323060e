// A container with a booted systemd: an overlay of this machine's root, with no network but its own loopback.
import { spawnSync } from "node:child_process"
import { cpSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { Effect, Schedule } from "effect"
import { start } from "../lib/processes.ts"
import { overlay, type Ran, ran, rootEnvironment, workshop } from "./making.ts"

const works = (command: string, ...args: ReadonlyArray<string>) => spawnSync(command, args).status === 0

/** What this machine lacks for one; undefined where it has all. */
export const lackForContainer = (): string | undefined => {
  if (process.getuid?.() !== 0) return "no root"
  if (!works("systemd-nspawn", "--version")) return "no systemd-nspawn"
  return works("unshare", "--mount", "sh", "-c", overlay("container").mount) ? undefined : "no overlay file system"
}

/** Carries the connections to the first of two ports, or sockets, to the second one. */
const relay = `
  const net = require("node:net")
  const [from, to] = process.argv.slice(1).map((at) => (/^\\d+$/.test(at) ? { host: "127.0.0.1", port: +at } : { path: at }))
  const server = net.createServer((near) => {
    const far = net.connect(to)
    near.on("error", () => far.destroy()).on("close", () => far.destroy())
    far.on("error", () => near.destroy()).on("close", () => near.destroy())
    near.pipe(far).pipe(near)
  })
  server.listen(from, () => console.log("relays " + server.address().port))
`

/** Starts a command that ends with the tests, however these end: systemd-nspawn takes its container along at SIGTERM only. */
const mortal = (...command: ReadonlyArray<string>) => start("setpriv", ["--pdeathsig", "TERM", ...command])

/** The cgroups that it has for itself: without, two containers would take each other's processes for their own. */
const group = basename(workshop)
const booting = ({ merged, mount }: ReturnType<typeof overlay>) => `
  for tree in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    [ ! -w $tree/cgroup.procs ] || { mkdir $tree/${group} && echo $$ > $tree/${group}/cgroup.procs; } || exit
  done
  ${mount} && cd "${merged}" || exit
  # Neither this machine's identity, nor the services that its owner has enabled.
  rm -rf etc/systemd/system/*.wants && : > etc/machine-id
  exec systemd-nspawn --boot --register=no --keep-unit --private-network --console=pipe --directory="${merged}"
`

/** The first process in the container, by the id that it has outside. */
const leaderOf = (nspawn: number) =>
  Effect.try(() => {
    const children = readFileSync(`/proc/${nspawn}/task/${nspawn}/children`, "utf8").split(" ")
    const leader = children.find((pid) => /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8")))
    if (leader === undefined) throw new Error("systemd-nspawn has started nothing")
    return leader
  }).pipe(Effect.retry({ schedule: Schedule.spaced("100 millis"), times: 300 }))

/** Boots one, until the scope ends; `files` are in /given there. */
export const bootContainer = Effect.fn("bootContainer")(function* (files: string) {
  const root = overlay("container")
  cpSync(files, join(root.upper, "given"), { recursive: true })
  const cgroups = ["/sys/fs/cgroup", "-path", `*/${group}*`, "-type", "d", "-delete"]
  yield* Effect.addFinalizer(() => Effect.promise(() => ran("find", cgroups)))
  const nspawn = yield* mortal("unshare", "--mount", "sh", "-c", booting(root))
  const leader = yield* leaderOf(nspawn.pid)
  yield* Effect.addFinalizer(() =>
    Effect.catchAll(Effect.timeout(nspawn.end("SIGTERM"), "1 minute"), () =>
      Effect.sync(() => process.kill(Number(leader), "SIGKILL"))
    )
  )

  /** Runs a shell script as root in it. */
  const run = (script: string): Effect.Effect<Ran> =>
    Effect.promise(() => ran("nsenter", ["-t", leader, "-a", "env", "-i", ...rootEnvironment, "sh", "-c", script]))
  /** The same for one that must succeed; what it printed. */
  const sh = (script: string): Effect.Effect<string> =>
    Effect.flatMap(run(script), ({ output, status }) =>
      status === 0 ? Effect.succeed(output) : Effect.dieMessage(`${script} ended with ${status}: ${output}`)
    )
  /** Repeats it for a minute, until what it prints fits. */
  const until = (script: string, fits: RegExp) =>
    run(script).pipe(
      Effect.filterOrFail(
        ({ output }) => fits.test(output),
        ({ output }) => `${script} does not print ${fits}, but ${output}`
      ),
      Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 300 }),
      Effect.catchAll(Effect.dieMessage),
      Effect.map(({ output }) => output)
    )
  yield* until("systemctl is-system-running --wait", /^(running|degraded)$/m)

  const carry = (inside: boolean, from: string | number, to: string | number) =>
    Effect.gen(function* () {
      const enter = inside ? ["nsenter", "-t", leader, "-n"] : []
      const running = yield* mortal(...enter, process.execPath, "-e", relay, String(from), String(to))
      return (yield* running.line("relays")).split(" ")[1]
    })
  /** A port out here that leads to one of its loopback. */
  const reach = (port: number) => {
    const socket = join(workshop, `in-${port}`)
    return Effect.zipRight(carry(true, socket, port), carry(false, 0, socket))
  }
  /** Lets it reach a port of the loopback out here, by the same number. */
  const lend = (port: number) => {
    const socket = join(workshop, `out-${port}`)
    return Effect.zipRight(carry(false, socket, port), carry(true, port, socket))
  }
  return { lend, reach, run, sh, until }
})
