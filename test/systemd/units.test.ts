import { spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { needs } from "../lib/needs.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { root } from "../lib/tilld.ts"

const folder = join(root, "systemd")
const units = readdirSync(folder).filter((name) => /[.](service|timer)$/.test(name))

const analyze = (...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync("systemd-analyze", args, { encoding: "utf8" })
  return { status, output: stdout + stderr }
}

describe("the units of systemd", () => {
  needs("systemd-analyze")

  it.each(["tilld.service", "tilld-doctor.service", "tilld-backup.service"])("%s is exposed by 1.2 at most", (name) => {
    const { output, status } = analyze("security", "--offline=true", "--threshold=12", "--no-pager", join(folder, name))
    expect(status, output).toBe(0)
  })

  clockTest("are valid, except the back-off that systemd supports from 254 on", function* () {
    // The programs that they start need not be here.
    const copies = join(yield* temporaryFolder, "units")
    mkdirSync(copies)
    for (const name of units) {
      writeFileSync(
        join(copies, name),
        readFileSync(join(folder, name), "utf8").replaceAll("/usr/bin/tilld", "/bin/sh")
      )
    }
    const files = units.map((name) => join(copies, name.replace("@", "@tilld")))
    for (const file of files.filter((each) => each.includes("@"))) {
      writeFileSync(file, readFileSync(file.replace("@tilld", "@"), "utf8"))
    }
    const { output, status } = analyze("verify", "--man=no", ...files)
    const complaints = output
      .split("\n")
      .filter((line) => line.includes(copies) && !/Unknown key( name)? 'Restart(Steps|MaxDelaySec)'/.test(line))
    expect({ status, complaints }).toEqual({ status: 0, complaints: [] })
  })

  clockTest("start at boot after the last step of the drill, as after an installation", function* () {
    const page = (name: string) => readFileSync(join(root, "docs", name), "utf8")
    const steps = [/^10[.] `systemctl enable --now ([^`]+)`/m.exec(page("backup.md"))?.[1]]
    const named = [...steps, /^`systemctl enable --now ([^`]+)`/m.exec(page("install.md"))?.[1]]
    for (const enabled of named) {
      const machine = join(yield* temporaryFolder, "etc/systemd/system")
      mkdirSync(machine, { recursive: true })
      for (const name of units) copyFileSync(join(folder, name), join(machine, name))
      const { status, stderr } = spawnSync(
        "systemctl",
        [
          "--root",
          join(machine, "../../.."),
          "enable",
          ...(enabled ?? expect.fail("the page enables nothing")).split(" ")
        ],
        { encoding: "utf8" }
      )
      expect(status, stderr).toBe(0)
      expect(readdirSync(join(machine, "multi-user.target.wants"))).toEqual(["tilld.service"])
      expect(readdirSync(join(machine, "timers.target.wants"))).toEqual(["tilld-backup.timer", "tilld-doctor.timer"])
    }
  })

  it.each(["tilld.service", "tilld-doctor.service", "tilld-backup.service"])("%s is reported when it fails", (name) => {
    expect(readFileSync(join(folder, name), "utf8")).toMatch(/^OnFailure=tilld-failed@%N\.service$/m)
  })

  it("back up to a file for each hour of the day", () => {
    const unit = readFileSync(join(folder, "tilld-backup.service"), "utf8")
    // As systemd reads it.
    const command = /^ExecStart=(.*)$/m.exec(unit)?.[1]?.replaceAll("$$", "$").replaceAll("%%", "%") ?? ""
    const { stdout } = spawnSync("sh", ["-c", command.replace("exec /usr/bin/tilld", "exec echo")], {
      encoding: "utf8"
    })
    expect(stdout).toMatch(
      /^backup --force --config \/etc\/tilld\/tilld.toml \/var\/lib\/tilld-backups\/tilld-[012]\d\.db\n$/
    )
  })

  it("give the daemon time to finish what is in flight before they kill it", () => {
    const unit = readFileSync(join(folder, "tilld.service"), "utf8")
    expect(unit).toMatch(/^KillSignal=SIGTERM\nKillMode=mixed$/m)
    // The listener takes 20 seconds for it at most, and the dispatcher 5.
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThanOrEqual(30)
  })

  it("bound the daemon's memory, and have Node end with a message before the kernel kills it", () => {
    const unit = readFileSync(join(folder, "tilld.service"), "utf8")
    const mebibytes = (setting: RegExp) => Number(setting.exec(unit)?.[1])
    const heap = mebibytes(/^Environment=NODE_OPTIONS=--max-old-space-size=(\d+)$/m)
    const high = mebibytes(/^MemoryHigh=(\d+)M$/m)
    // What an attack may add, by `npm run test:load`, and as much for the young generation, SQLite and the threads.
    const outside = 256 + 256
    expect(heap).toBeGreaterThanOrEqual(512)
    expect(heap + outside).toBeLessThanOrEqual(high)
    expect(mebibytes(/^MemoryMax=(\d+)M$/m)).toBeGreaterThan(high)
  })

  it.each(["tilld.service", "tilld-doctor.service", "tilld-backup.service"])("%s inherits no NODE_OPTIONS", (name) => {
    expect(readFileSync(join(folder, name), "utf8")).toMatch(
      /^(UnsetEnvironment=NODE_OPTIONS$|Environment=NODE_OPTIONS=)/m
    )
  })

  it("restart the daemon without a limit, except after failures that need a person", () => {
    const unit = readFileSync(join(folder, "tilld.service"), "utf8").split("\n")
    for (const line of [
      "Type=notify",
      "NotifyAccess=all",
      "Restart=always",
      "StartLimitIntervalSec=0",
      "RestartPreventExitStatus=2 243"
    ]) {
      expect(unit).toContain(line)
    }
    expect(Number(unit.find((line) => line.startsWith("WatchdogSec="))?.split("=")[1])).toBeGreaterThanOrEqual(30)
  })
})
