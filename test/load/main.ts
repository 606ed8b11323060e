import { execFileSync } from "node:child_process"
import { NodeContext, NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { startAlone } from "../lib/aloneDaemon.ts"
import { type Counts, type Sort, sorts } from "./Attack.ts"
import { abuse, type Traffic } from "./abuse.ts"

// `npm run test:load`: thousands of connections that mean no good, against a daemon that goes on serving.

/** Of a request under attack, beside one in peace, both with the attackers' process on the same machine. */
const mostRatio = 20
/** MiB more than before the attack. */
const mostMemory = 256

const wanted: Counts = {
  silent: 2_000,
  kept: 1_000,
  slowHeaders: 1_500,
  slowBodies: 1_500,
  oversized: 1_000,
  greedy: 1_000
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Node raises its soft limit of open files to the hard one, which a shell may have lowered. */
const fitting = (counts: Counts): Counts => {
  const limit = Number(execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }))
  const total = sorts.reduce((sum, sort) => sum + counts[sort], 0)
  const share = Number.isNaN(limit) ? 1 : Math.min(1, (limit - 256) / total)
  if (share < 1) say(`ulimit -n is ${limit}: ${Math.floor(share * 100)} % of the connections`)
  return Object.fromEntries(sorts.map((sort) => [sort, Math.floor(counts[sort] * share)])) as Record<Sort, number>
}

const told = (name: string, { p50, p99, payments }: Traffic) =>
  say(`${name}: ${payments} payments made and read, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`)

const main = Effect.gen(function* () {
  const counts = fitting(wanted)
  const daemon = yield* startAlone()
  const { memory, outcomes, quiet, sockets, underAttack } = yield* abuse(daemon, counts, {
    breath: "5 millis",
    quietPayments: 4_000
  })
  told("in peace", quiet)
  told("under attack", underAttack)
  for (const sort of sorts) {
    const came = Object.entries(outcomes[sort]).map(([outcome, count]) => `${count} × ${outcome}`)
    say(`${counts[sort]} ${sort}: ${came.join(", ")}`)
  }
  const ratio = underAttack.p99 / quiet.p99
  say(`p99 ratio ${ratio.toFixed(1)} (at most ${mostRatio})`)
  say(
    `memory ${memory.before.toFixed(0)} MiB before, ${memory.most.toFixed(0)} MiB at most (${mostMemory} more allowed)`
  )
  say(`open sockets ${sockets.before} before, ${sockets.after} after`)

  const failures = [...quiet.failures, ...underAttack.failures].slice(0, 5)
  if (ratio > mostRatio) failures.push(`the p99 of the others is ${ratio.toFixed(1)} times that in peace`)
  if (memory.most - memory.before > mostMemory) failures.push("the memory is not bounded")
  if (sockets.after > sockets.before) failures.push("connections are left")
  if (underAttack.payments === 0) failures.push("nobody was served under attack")
  if (Object.keys(outcomes.oversized).some((outcome) => outcome !== "431"))
    failures.push("oversized headers: not all 431")
  for (const failure of failures) say(`FAILED: ${failure}`)
  say(failures.length === 0 ? "everybody else was served, and everything has ended" : `${failures.length} failed`)
  process.exitCode = failures.length === 0 ? 0 : 1
})

NodeRuntime.runMain(main.pipe(Effect.scoped, Effect.provide(NodeContext.layer)))
