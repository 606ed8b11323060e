import { parseArgs } from "node:util"
import { Stage, seedsSteps, shrink } from "./simulate.ts"

// `npm run sim -- --seeds 10000` plays the seeds 1 to 10,000; `--seed 4711` that one, or from it on. A seed that fails is
// printed with the fewest of its steps that still fail.

const { values } = parseArgs({ options: { seeds: { type: "string" }, seed: { type: "string" } } })
const first = Number(values.seed ?? 1)
const count = Number(values.seeds ?? (values.seed === undefined ? 40 : 1))
const say = (line: string): void => void process.stdout.write(`${line}\n`)

const stage = await Stage.make()
const failed: Array<number> = []
let played = 0
let millis = 0

/** Whether two failures are of one kind: they differ in numbers and names at most. */
const kindOf = (why: string | undefined): string | undefined => why?.replaceAll(/0x[0-9a-f]+|[0-9]+/g, "").slice(0, 60)

const report = async (seed: number, why: string): Promise<void> => {
  say(`\nseed ${seed} fails: ${why}\n`)
  const steps = await shrink(seedsSteps(String(seed)), async (fewer) => {
    return kindOf(await stage.run(String(seed), fewer)) === kindOf(why)
  })
  say(`${steps.length} steps are enough:`)
  for (const step of steps) say(`  ${JSON.stringify(step)}`)
  say(`with these: ${await stage.run(String(seed), steps)}\n`)
}

try {
  for (let seed = first; seed < first + count; seed++) {
    const began = performance.now()
    const why = await stage.run(String(seed), seedsSteps(String(seed)))
    millis += performance.now() - began
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

if (failed.length > 0) say(`failed: ${failed.join(", ")}`)
say(`${played} seeds, ${failed.length} failed, ${(millis / Math.max(1, played)).toFixed(0)} ms a seed`)
process.exitCode = failed.length > 0 ? 1 : 0
