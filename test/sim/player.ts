import { type Choice, Stage, seedsSteps, shrink } from "./simulate.ts"
import type { Strictness } from "./watched.ts"

// Plays the seeds that its parent orders, one after the other, and reports each result.

/** The allowed stories and the requirements for the daemon; as JSON, the process's first argument. */
export interface Rules {
  readonly choice: Choice
  readonly strict: Readonly<Strictness>
}

export interface Ordered {
  readonly seed: number
  /** Whether the fewest steps that still fail are looked for. */
  readonly isCut: boolean
}

export interface Played {
  readonly seed: number
  /** Milliseconds of the processor. */
  readonly computed: number
  /** The report of a failed seed. */
  readonly report: string | undefined
}

const { choice, strict } = JSON.parse(process.argv[2] ?? "") as Rules
const stage = await Stage.make(strict)

/** Whether two failures are of one kind: they differ in numbers and names at most. */
const kindOf = (why: string | undefined): string | undefined => why?.replaceAll(/0x[0-9a-f]+|[0-9]+/g, "").slice(0, 60)

const cutDown = async (seed: string, why: string): Promise<string> => {
  const steps = await shrink(seedsSteps(seed, choice), async (fewer) => {
    return kindOf(await stage.run(seed, fewer)) === kindOf(why)
  })
  return [
    `\nseed ${seed} fails: ${why}\n`,
    `${steps.length} steps are enough:`,
    ...steps.map((step) => `  ${JSON.stringify(step)}`),
    `with these: ${await stage.run(seed, steps)}\n`
  ].join("\n")
}

const play = async (seed: string, isCut: boolean): Promise<Omit<Played, "seed">> => {
  const before = process.cpuUsage()
  const why = await stage.run(seed, seedsSteps(seed, choice))
  const { system, user } = process.cpuUsage(before)
  const computed = (system + user) / 1_000
  if (why === undefined) return { computed, report: undefined }
  return { computed, report: isCut ? await cutDown(seed, why) : `seed ${seed} fails: ${why.split("\n")[0]}` }
}

process.on("message", async ({ isCut, seed }: Ordered) => {
  process.send?.({ seed, ...(await play(String(seed), isCut)) } satisfies Played)
})
process.on("disconnect", () => stage.close())
