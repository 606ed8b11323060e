import { fork } from "node:child_process"
import { randomInt } from "node:crypto"
import { once } from "node:events"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import type { Ordered, Played, Rules } from "./player.ts"
import { jobsOf, repeatOf, seedsOf } from "./seeds.ts"
import { type Choice, leftOut, usual } from "./simulate.ts"
import { type Kind, kinds } from "./stories.ts"
import { type Strictness, usualStrictness } from "./watched.ts"

const usage = `npm run sim -- [options]

  --seeds 10000     plays so many seeds; 40 where neither this nor --seed is given
  --seed 4711       plays that one; with --seeds so many from it on. Without it the first one is random, and printed
  --only a,b        each seed tells one of these stories, where else about every second tells one of all
  --without a,b     none tells these
  --with a,b        tells these too, where they are left out otherwise ("all": all of them)
  --jobs N          processes that play; as many as there are cores where it is not given
  --strict a,b      additional requirements for the daemon
  --engine postgres the databases are in a PostgreSQL that npm has brought
  --help            says this

A seed that fails is printed with the command that repeats it, the first three with the fewest steps that still fail.
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
    jobs: { type: "string" },
    strict: { type: "string" },
    engine: { type: "string" },
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
const { count, first } = seedsOf(values, randomInt(1, 900_000_000))
const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** `--strict silence,leftovers`: additional requirements for the daemon. */
const strict = { ...usualStrictness }
for (const name of values.strict?.split(",") ?? []) {
  if (!(name in strict)) throw new Error(`${name} is none of ${Object.keys(strict).join(", ")}`)
  strict[name as keyof Strictness] = true
}

const rules: Rules = { choice, strict }
const last = first + count - 1
const failed: Array<number> = []
let next = first
let played = 0
let computing = 0

const hear = ({ computed, seed, report }: Played): void => {
  played++
  computing += computed
  if (report !== undefined) {
    failed.push(seed)
    say(report)
  }
  if (played % 500 === 0) say(`${played} of ${count} seeds, ${failed.length} failed`)
}

/** Has a process play seeds until there are no more. */
const play = async (): Promise<void> => {
  const player = fork(new URL("player.ts", import.meta.url), [JSON.stringify(rules)])
  let seed = next
  const order = (): void => {
    seed = next++
    // The first few are cut down: they tell enough.
    if (seed <= last) player.send({ seed, isCut: failed.length < 3 } satisfies Ordered)
    else player.disconnect()
  }
  player.on("message", (one: Played) => {
    hear(one)
    order()
  })
  order()
  const [code, signal] = await once(player, "exit")
  if (code !== 0) throw new Error(`${repeatOf(seed, values)}: its process has ended with ${code ?? signal}`)
}

/** Starts what the databases are in; what ends it. */
const startEngine = async (): Promise<() => unknown> => {
  if (values.engine !== "postgres") return () => undefined
  const { env } = process
  env["TEST_ENGINE"] = values.engine
  return (await (await import("../lib/postgresServer.ts")).setup()) ?? (() => undefined)
}

const endEngine = await startEngine()
const began = performance.now()
const jobs = Math.min(count, jobsOf(values.jobs, availableParallelism()))
if (values.seed === undefined) say(`seeds from ${first} on`)
await Promise.all(Array.from({ length: jobs }, play)).finally(endEngine)
const each = (all: number) => (all / Math.max(1, played)).toFixed(0)

if (leftOut.length > 0 && values.only === undefined) say(`left out: ${leftOut.join(", ")}`)
for (const seed of failed.sort((a, b) => a - b)) say(`failed: ${repeatOf(seed, values)}`)
const pace = `${each(performance.now() - began)} ms a seed with ${jobs} at once, ${each(computing)} ms of computing each`
say(`${played} seeds, ${failed.length} failed, ${pace}`)
process.exitCode = failed.length > 0 ? 1 : 0
