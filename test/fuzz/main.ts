import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import { NodeContext, NodeHttpClient, NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import { median } from "../bench/Figure.ts"
import { fuzz } from "./fuzz.ts"
import { fuzzAnswers } from "./rpc/fuzzAnswers.ts"

// `npm run test:fuzz`: 20,000 requests that the document gives rise to, and 20,000 answers of a chain's provider, of a new
// seed each time; `--seed 4711` plays one again, `--count 100000` sends more, `--of requests` or `--of answers` plays one
// of the two, and `--life 12` one life of a watcher.

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    count: { type: "string" },
    of: { type: "string" },
    life: { type: "string" }
  }
})
const seed = Number(values.seed ?? randomInt(2 ** 31))
const count = Number(values.count ?? 20_000)
const life = values.life === undefined ? undefined : Number(values.life)
/** MiB more at the end than when the daemon was warm. */
const mostMemory = 128
/** Times as much in use after the second half of the answers as after the first. */
const mostGrowth = 1.5
/** The first few tell enough. */
const shown = 5

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const sayCounts = (counts: ReadonlyMap<string, number>) => {
  for (const [name, times] of [...counts].sort()) say(`${String(times).padStart(6)} × ${name}`)
}
const secondsSince = (began: number): string => ((performance.now() - began) / 1000).toFixed(0)

const ofRequests = Effect.gen(function* () {
  say(`seed ${seed}, ${count} requests`)
  const began = performance.now()
  const { answers, faults, memory } = yield* fuzz(seed, count)
  sayCounts(answers)
  for (const { answer, at, problems, request } of faults.slice(0, shown)) {
    say(`\nrequest ${at} of seed ${seed}: ${problems.join("; ")}\n${request}\n---\n${answer.slice(0, 4_000)}`)
  }
  const isBounded = !(memory.after - memory.before > mostMemory)
  say(`memory ${memory.before.toFixed(0)} MiB when warm, ${memory.after.toFixed(0)} MiB at the end`)
  if (!isBounded) say(`FAILED: that is more than ${mostMemory} MiB more`)
  say(`${count} requests in ${secondsSince(began)} s, ${faults.length} faults, seed ${seed}`)
  return faults.length === 0 && isBounded
})

const ofAnswers = Effect.gen(function* () {
  say(`seed ${seed}, ${count} answers`)
  const began = performance.now()
  const { counts, faults, garbage, heaps, leftBehind, lives, made, waiting } = yield* fuzzAnswers(seed, count, life)
  sayCounts(counts)
  for (const { again, answers, why } of faults.slice(0, shown)) say(`\n${again}\n${why}\n---\n${answers.join("\n")}`)
  const half = Math.floor(heaps.length / 2)
  const growth = median(heaps.slice(half)) / median(heaps.slice(0, half))
  const isFlat = !(growth > mostGrowth)
  say(`${garbage} were garbage, and health reported each; an answer left ${median(leftBehind).toFixed(0)} bytes behind`)
  say(`memory in use: ${growth.toFixed(2)} times as much in the second half`)
  if (!isFlat) say(`FAILED: that is more than ${mostGrowth} times`)
  say(`${waiting} payments of ${lives} lives have their money and wait for a person`)
  say(`${made} answers in ${secondsSince(began)} s, ${faults.length} faults, seed ${seed}`)
  return faults.length === 0 && isFlat
})

const main = Effect.gen(function* () {
  const requests = values.of === "answers" || (yield* ofRequests)
  const answers = values.of === "requests" || (yield* ofAnswers)
  process.exitCode = requests && answers ? 0 : 1
})

NodeRuntime.runMain(main.pipe(Effect.provide(Layer.mergeAll(NodeContext.layer, NodeHttpClient.layer, Rpc.layer))))
