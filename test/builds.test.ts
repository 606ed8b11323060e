import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "./lib/store.ts"
import { root } from "./lib/tilld.ts"

/** Places builds one after the other, each replaced a second after the one before. */
const place = (folder: string, names: ReadonlyArray<string>) => {
  const script = `
    import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs"
    import { placeBuild } from "${root}/scripts/builds.mjs"
    process.chdir("${folder}")
    let former
    for (const [i, name] of ${JSON.stringify(names)}.entries()) {
      mkdirSync("from/program", { recursive: true })
      writeFileSync("from/client.js", name)
      writeFileSync("from/program/tilld.js", 'console.log("' + name + '")')
      writeFileSync("from/program/chunk.js", name)
      placeBuild("from", "dist", name)
      if (existsSync("dist/builds/" + former)) utimesSync("dist/builds/" + former, i, i)
      former = name
    }`
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" })
  expect(stderr).toBe("")
}

const says = (folder: string) =>
  spawnSync(process.execPath, [join(folder, "dist/tilld.js")], { encoding: "utf8" }).stdout.trim()

it.live("a build is placed beside the ten former ones, whose files stay for daemons that run from them", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
    place(
      folder,
      Array.from({ length: 12 }, (_, i) => `build${i + 1}`)
    )
    const builds = Array.from({ length: 11 }, (_, i) => `build${i + 2}`).sort()
    expect(readdirSync(join(folder, "dist/builds")).sort()).toEqual(builds)
    for (const build of builds) {
      expect(readFileSync(join(folder, "dist/builds", build, "chunk.js"), "utf8")).toBe(build)
    }
    expect(says(folder)).toBe("build12")
    expect(readdirSync(join(folder, "dist")).sort()).toEqual([".inputs", "builds", "client.js", "tilld.js"])
    expect(readFileSync(join(folder, "dist/client.js"), "utf8")).toBe("build12")

    // Back to a former one: it is complete again, and what replaced it stays too.
    place(folder, ["build11"])
    expect(says(folder)).toBe("build11")
    expect(readdirSync(join(folder, "dist/builds")).sort()).toEqual(builds)
    expect(readdirSync(join(folder, "dist/builds/build11"))).not.toContain(".npmignore")
  }).pipe(Effect.scoped)
)

it.scoped(
  "a program that may open too few files says so in one line, with its priority in the journal, and exits 2",
  () =>
    Effect.gen(function* () {
      const log = join(yield* temporaryFolder, "log")
      const started = (files: number) => {
        const command = `exec 2>${log}; JOURNAL_STREAM=$(stat -c %d:%i ${log}) exec prlimit --nofile=${files} ${process.execPath} ${root}/dist/tilld.js --help`
        const { status, stdout } = spawnSync("bash", ["-c", command], { encoding: "utf8" })
        return { status, stdout }
      }
      // Node 20 opens all files of the program at once; later ones need hardly more than to start themselves.
      let last = started(40)
      for (let files = 39; last.status === 0; files--) last = started(files)
      expect(last).toEqual({ status: 2, stdout: "" })
      expect(readFileSync(log, "utf8")).toMatch(/^<3>tilld: too few file descriptors to start: raise LimitNOFILE .*\n$/)
    })
)
