import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { crashes } from "./crashes.ts"

// `npm run test:crashes`: 100 kills at moments of a new seed each time; `--seed 4711` has the moments of one again,
// `--kills 1000` more of them.

const { values } = parseArgs({ options: { seed: { type: "string" }, kills: { type: "string" } } })
const seed = Number(values.seed ?? randomInt(2 ** 31))
const kills = Number(values.kills ?? 100)
/** The first few tell enough. */
const shown = 20

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const main = Effect.gen(function* () {
  say(`seed ${seed}, ${kills} kills`)
  const began = performance.now()
  const report = yield* crashes(kills, seed)
  const { arrivals, cutOff, deliveries, events, killed, paid, payments, problems, repeated, unanswered } = report
  say(
    `killed ${Object.entries(killed)
      .map(([kind, count]) => `${count} × ${kind}`)
      .join(", ")}`
  )
  say(`${payments} payments, ${paid} of them paid; ${unanswered} requests had no answer and were made again`)
  say(`${cutOff} webhooks were unanswered at a kill; ${arrivals} arrived, ${repeated} of them not for the first time`)
  for (const problem of problems.slice(0, shown)) say(`FAILED: ${problem}`)
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  say(
    `${kills} kills in ${seconds} s, ${events} events in ${deliveries} deliveries, ${problems.length} problems, seed ${seed}`
  )
  process.exitCode = problems.length === 0 ? 0 : 1
})

NodeRuntime.runMain(main)
