import { expect, it } from "@effect/vitest"
import { Clock, Effect, Layer, TestClock } from "effect"
import { makeJudge } from "../../src/Conditions/judge.ts"
import { type HeldCondition, look } from "../../src/Conditions/standing.ts"
import { Reader } from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { failingTargets } from "../../src/Webhooks/queue/DeliveryLogRepo.ts"
import { healthOf } from "../../src/Webhooks/queue/EndpointsRepo.ts"
import { execute } from "../lib/store.ts"
import { deliveries, dispatching, merchant, newPayment, publish, untilStored } from "../lib/webhooks.ts"
import { a, minute, ok, refused, register, scripted } from "../Webhooks/endpoints.ts"
import { chainsOf, waitingToCollect } from "./surroundings.ts"

const noChains = chainsOf(() => [])

/** The real time, and the time by a clock that is ahead. Milliseconds. */
const now = 1_000 * minute
const ahead = now + 40 * minute

const live = { ...merchant, mode: "live" } as const

/** When by which clock, and what: one event, if any, which the endpoint accepts, or which fails first or permanently. */
type Step = `${keyof typeof times} ${"arrives" | "fails" | "is given up" | "nothing"}`

const times = { now, ahead, later: now + minute } as const

const timeOf = (step: Step) => times[step.split(" ", 1)[0] as keyof typeof times]

const attempt = ({ answers }: ReturnType<typeof scripted>, step: Step) =>
  Effect.gen(function* () {
    const at = timeOf(step)
    const what = step.slice(step.indexOf(" ") + 1)
    yield* TestClock.setTime(at)
    if (what === "nothing") return
    answers[a] = what === "arrives" ? ok : refused
    yield* publish(yield* newPayment(undefined, live), "pending", at)
    yield* untilStored(Effect.map(deliveries, (all) => all.every(({ attempts }) => attempts > 0)))
    if (what !== "is given up") return
    yield* execute(
      "UPDATE deliveries SET status = 'failed', attempts = 6, next_attempt_at = NULL, done_at = ? WHERE status = 'pending'",
      [at]
    )
  })

/** The alerts that are open after a look every 15 seconds for ten minutes. */
const alerts = Effect.gen(function* () {
  const judge = yield* makeJudge(() => [])
  let seen: ReadonlyArray<HeldCondition> = []
  for (let i = 0; i < 40; i++) {
    seen = look(seen, yield* judge.look, yield* Clock.currentTimeMillis).seen
    yield* TestClock.adjust("15 seconds")
  }
  return seen.filter(({ kind, openedAt }) => kind === "endpoint_receives_nothing" && openedAt !== undefined).length
})

it.scoped.each<readonly [title: string, steps: ReadonlyArray<Step>, failing: 0 | 1]>([
  ["a success of a clock that was ahead silences no failure", ["ahead arrives", "now fails"], 1],
  ["nor do several", ["ahead arrives", "now arrives", "ahead arrives", "later fails"], 1],
  ["a failure under a clock that was ahead is reported", ["ahead fails", "now fails"], 1],
  ["also where only its retries follow", ["ahead fails", "now nothing"], 1],
  ["and is over with the next success", ["ahead is given up", "now arrives"], 0],
  ["a failure under a clock that was behind is reported", ["ahead arrives", "now fails", "ahead fails"], 1],
  ["nothing is wrong with an endpoint that takes all", ["ahead arrives", "now arrives"], 0]
])("%s", ([, steps, failing]) => {
  const client = scripted({})
  return dispatching(client, function* () {
    const { id } = yield* register(a, undefined, live)
    for (const step of steps) yield* attempt(client, step)
    const reader = yield* Reader
    expect(yield* alerts).toBe(failing)
    expect(yield* failingTargets(reader, live, 10)).toHaveLength(failing)
    const arrived = steps.filter((step) => step.endsWith("arrives")).map(timeOf)
    expect((yield* healthOf(reader, id)).deliveredAt).toBe(arrived.at(-1))
  }).pipe(Effect.provide(Layer.mergeAll(noChains, Workers.layer, waitingToCollect(0n))))
})
