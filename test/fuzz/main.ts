import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import { NodeContext, NodeHttpClient, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { fuzz } from "./fuzz.ts"

// `npm run test:fuzz`: 20,000 requests that the document gives rise to, of a new seed each time; `--seed 4711` plays one
// again, `--count 100000` sends more.

const { values } = parseArgs({ options: { seed: { type: "string" }, count: { type: "string" } } })
const seed = Number(values.seed ?? randomInt(2 ** 31))
const count = Number(values.count ?? 20_000)
/** MiB more at the end than when the daemon was warm. */
const mostMemory = 128
/** The first few tell enough. */
const shown = 5

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const main = Effect.gen(function* () {
  say(`seed ${seed}, ${count} requests`)
  const began = performance.now()
  const { answers, faults, memory } = yield* fuzz(seed, count)
  for (const [name, times] of [...answers].sort()) say(`${String(times).padStart(6)} × ${name}`)
  for (const { answer, at, problems, request } of faults.slice(0, shown)) {
    say(`\nrequest ${at} of seed ${seed}: ${problems.join("; ")}\n${request}\n---\n${answer.slice(0, 4_000)}`)
  }
  const isBounded = !(memory.after - memory.before > mostMemory)
  say(`memory ${memory.before.toFixed(0)} MiB when warm, ${memory.after.toFixed(0)} MiB at the end`)
  if (!isBounded) say(`FAILED: that is more than ${mostMemory} MiB more`)
  say(
    `${count} requests in ${((performance.now() - began) / 1000).toFixed(0)} s, ${faults.length} faults, seed ${seed}`
  )
  process.exitCode = faults.length === 0 && isBounded ? 0 : 1
})

NodeRuntime.runMain(main.pipe(Effect.provide(Layer.merge(NodeContext.layer, NodeHttpClient.layer))))
