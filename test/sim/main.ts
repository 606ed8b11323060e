import { parseArgs } from "node:util"
import { type Choice, leftOut, Stage, seedsSteps, shrink, usual } from "./simulate.ts"
import { type Kind, kinds } from "./stories.ts"
import { type Strictness, usualStrictness } from "./watched.ts"

const usage = `npm run sim -- [options]

  --seeds 10000     plays the seeds 1 to 10,000; 40 where neither this nor --seed is given
  --seed 4711       plays that one; with --seeds so many from it on
  --only a,b        each seed tells one of these stories, where else about every second tells one of all
  --without a,b     none tells these
  --with a,b        tells these too, where they are left out otherwise ("all": all of them)
  --strict a,b      what the daemon is held to besides the usual
  --help            says this

A seed that fails is printed with the fewest of its steps that still fail.
Stories: ${kinds.join(", ")}.
Strictness: ${Object.keys(usualStrictness).join(", ")}.
`

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    seed: { type: "string" },
    only: { type: "string" },
    without: { type: "string" },
    with: { type: "string" },
    strict: { type: "string" },
    help: { type: "boolean" }
  }
})
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}

const kindsIn = (text = ""): ReadonlyArray<Kind> =>
  text.split(",").flatMap((name) => {
    if (name === "") return []
    if (name === "all") return kinds
    const kind = kinds.find((one) => one === name)
    if (kind === undefined) throw new Error(`${name} is none of ${kinds.join(", ")}`)
    return [kind]
  })

const without = kindsIn(values.without)
const choice: Choice =
  values.only === undefined
    ? {
        kinds: kinds.filter(
          (kind) => (usual.kinds.includes(kind) || kindsIn(values.with).includes(kind)) && !without.includes(kind)
        ),
        always: false
      }
    : { kinds: kindsIn(values.only), always: true }
const first = Number(values.seed ?? 1)
const count = Number(values.seeds ?? (values.seed === undefined ? 40 : 1))
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** `--strict silence,leftovers`: what the daemon is held to besides the usual. */
const strict = { ...usualStrictness }
for (const name of values.strict?.split(",") ?? []) {
  if (!(name in strict)) throw new Error(`${name} is none of ${Object.keys(strict).join(", ")}`)
  strict[name as keyof Strictness] = true
}

const stage = await Stage.make(strict)
const failed: Array<number> = []
let played = 0
let millis = 0
let computing = 0

/** Whether two failures are of one kind: they differ in numbers and names at most. */
const kindOf = (why: string | undefined): string | undefined => why?.replaceAll(/0x[0-9a-f]+|[0-9]+/g, "").slice(0, 60)

const report = async (seed: number, why: string): Promise<void> => {
  say(`\nseed ${seed} fails: ${why}\n`)
  const steps = await shrink(seedsSteps(String(seed), choice), async (fewer) => {
    return kindOf(await stage.run(String(seed), fewer)) === kindOf(why)
  })
  say(`${steps.length} steps are enough:`)
  for (const step of steps) say(`  ${JSON.stringify(step)}`)
  say(`with these: ${await stage.run(String(seed), steps)}\n`)
}

try {
  for (let seed = first; seed < first + count; seed++) {
    const began = performance.now()
    const computed = process.cpuUsage()
    const why = await stage.run(String(seed), seedsSteps(String(seed), choice))
    millis += performance.now() - began
    const { system, user } = process.cpuUsage(computed)
    computing += (system + user) / 1_000
    played++
    if (why !== undefined) {
      failed.push(seed)
      // The first few tell enough.
      if (failed.length <= 3) await report(seed, why)
      else say(`seed ${seed} fails: ${why.split("\n")[0]}`)
    }
    if (played % 500 === 0) say(`${played} of ${count} seeds, ${failed.length} failed`)
  }
} finally {
  stage.close()
}

if (leftOut.length > 0 && values.only === undefined) say(`left out: ${leftOut.join(", ")}`)
if (failed.length > 0) say(`failed: ${failed.join(", ")}`)
const each = (all: number) => (all / Math.max(1, played)).toFixed(0)
say(`${played} seeds, ${failed.length} failed, ${each(millis)} ms a seed, ${each(computing)} of them computing`)
process.exitCode = failed.length > 0 ? 1 : 0
