import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, rmSync, type Stats, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect, Either } from "effect"
import { isWhole, Plan } from "../../src/Collect/Plan.ts"
import { readJsonFile } from "../../src/Collect/readJsonFile.ts"
import { Signed } from "../../src/Collect/Signed.ts"
import { seedOf } from "../../src/Collect/seed.ts"
import { signPlan } from "../../src/Collect/sign.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { type Ended, PATH, root, start, startTilld, tilld } from "../lib/tilld.ts"
import { someone, usd } from "./collecting.ts"
import { inFrontOf } from "./inFront.ts"
import { customer, destination, phrase, planOf, secretsOf } from "./plans.ts"
import { killedAt, openShop } from "./shop.ts"

/** What changes a file, or gives it its name. */
const moments = "openSync,writeFileSync,fsyncSync,linkSync,renameSync,rmSync,closeSync"

const partialsOf = (output: string) =>
  readdirSync(dirname(output))
    .filter((name) => name.endsWith(".partial"))
    .map((name) => join(dirname(output), name))

/**
 * Kills a command before each of its calls that changes a file, one run after the other, until one is not killed: with what the
 * runs before have left. The file is there whole, by `check`, or as it was before each run; both are met.
 */
const killedEverywhere = Effect.fnUntraced(function* <A, E>(
  output: string,
  run: (env: Readonly<Record<string, string>>) => Effect.Effect<Ended>,
  check: Effect.Effect<A, E>,
  before?: string
) {
  const found = new Set<"as before" | "whole">()
  const partials: Array<Stats> = []
  let kills = 0
  while (true) {
    rmSync(output, { force: true })
    if (before !== undefined) writeFileSync(output, before)
    const { code, signal, stderr } = yield* run(killedAt(kills + 1, moments))
    const isAsBefore = existsSync(output) ? readFileSync(output, "utf8") === before : before === undefined
    if (!isAsBefore) yield* check
    if (signal !== "SIGKILL") {
      // A run removes the partial files that killed ones have left.
      expect([code, isAsBefore, partialsOf(output)], stderr).toEqual([0, false, []])
      break
    }
    partials.push(...partialsOf(output).map((path) => statSync(path)))
    kills += 1
    found.add(isAsBefore ? "as before" : "whole")
  }
  // For its owner only too, and one of them half of a file.
  expect(partials.map(({ mode }) => mode & 0o777)).toEqual(partials.map(() => 0o600))
  const longest = Math.max(...partials.map(({ size }) => size))
  expect(partials.some(({ size }) => size > 0 && size < 0.6 * longest)).toBe(true)
  expect([kills > 5, found]).toEqual([true, new Set(["as before", "whole"])])
})

/** All that is in a folder, and below it. */
const contents = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => `${name}\n${readFileSync(join(parentPath, name), "utf8")}`)
    .join("\n")
    .toLowerCase()

liveTest("a signature that was killed at any moment leaves no part of its file, and nothing of the seed", function* () {
  const signed = yield* signPlan(planOf(), Either.getOrThrow(seedOf(phrase)), { allow: [], feeCeiling: 10n ** 15n })
  const folders = yield* Effect.all([temporaryFolder, temporaryFolder])
  const command = [
    ...["sweep", "sign", "plan.json", "-o", "signed.json", "--any-age"],
    ...["--destination", destination, "--refund-to", customer]
  ]
  const everywhere = (folder: string, more: ReadonlyArray<string>, before?: string) => {
    const output = join(folder, "signed.json")
    const own = { HOME: folder, TMPDIR: folder, XDG_CACHE_HOME: folder, XDG_CONFIG_HOME: folder }
    writeFileSync(join(folder, "plan.json"), JSON.stringify(planOf()))
    return killedEverywhere(
      output,
      (env) => tilld([...command, ...more, "--seed-fd", "0"], { cwd: folder, input: phrase, env: { ...own, ...env } }),
      Effect.map(readJsonFile(output, Signed, "a signed plan"), (found) => expect(found).toEqual(signed)),
      before
    )
  }
  const [first, second] = folders
  yield* Effect.all([everywhere(first, []), everywhere(second, ["--force"], "{}\n")], { concurrency: 2 })

  // While it waits for the seed, after the last line that it shows before.
  rmSync(join(first, "signed.json"))
  expect(spawnSync("mkfifo", [join(first, "seed")], { env: { PATH } }).status).toBe(0)
  const waiting = 'exec "$0" "$@" --seed-fd 3 3<>seed'
  const args = ["-c", waiting, process.execPath, join(root, "dist/tilld.js"), ...command]
  const running = yield* start("sh", args, { cwd: first })
  yield* running.line("Left out")
  // Of its memory nothing goes into a core dump.
  expect(readFileSync(`/proc/${running.pid}/coredump_filter`, "utf8")).toBe("00000000\n")
  expect(readFileSync("/proc/self/coredump_filter", "utf8")).not.toBe("00000000\n")
  expect((yield* running.end("SIGKILL")).signal).toBe("SIGKILL")
  expect(existsSync(join(first, "signed.json"))).toBe(false)

  const left = folders.map(contents).join("\n")
  expect(left).toContain(signed.checksum)
  expect(secretsOf(phrase).filter((secret) => left.includes(secret))).toEqual([])
})

liveTest("a plan that was killed at any moment leaves no part of its file, and is made again", function* () {
  let killOn: string | undefined
  let victim = 0
  const front = (url: string) =>
    inFrontOf(url, ({ method }, result) => {
      if (method === killOn) process.kill(victim, "SIGKILL")
      return result
    })
  const { file, paid, planning } = yield* openShop({ front })
  yield* Effect.all([paid("USDC", 25n * usd), paid("USDT", 40n * usd)], { concurrency: "unbounded" })
  const output = file("plan.json")
  const command = planning("plan.json", "--to", someone())

  // While it asks the chain.
  for (const method of ["eth_simulateV1", "eth_estimateGas"]) {
    const running = yield* startTilld(command)
    victim = running.pid
    killOn = method
    expect((yield* running.ended).signal).toBe("SIGKILL")
    killOn = undefined
    expect([existsSync(output), partialsOf(output)]).toEqual([false, []])
  }

  const check = Effect.map(readJsonFile(output, Plan, "a plan"), (plan) =>
    expect([isWhole(plan), plan.moves.length]).toEqual([true, 2])
  )
  yield* killedEverywhere(output, (env) => tilld(command, { env }), check)
})
