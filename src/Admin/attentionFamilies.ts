import { Clock, Effect } from "effect"
import { modes } from "../Domain/Chain.ts"
import { ExceptionKind } from "../Domain/Exception.ts"
import { countLimit, countOpenOfKind } from "../Payments/ExceptionListRepo.ts"
import { eventLoopTurn } from "../Sql/eventLoopTurn.ts"
import type { Db } from "../Sql.ts"
import { type EndpointOutcome, mostEndpoints, outcomesOf } from "../Webhooks/queue/EndpointHealthRepo.ts"
import { gauge, type Measured } from "./gauge.ts"

// What needs a person: open exceptions, and endpoints that fail. Read by index, and requests are served between two
// statements.

/** Maximum number of endpoints with their own series. */
const named = 100

/** Failing ones first, longest failing first; then those without a success for longest. */
const byNeed = (one: EndpointOutcome, next: EndpointOutcome): number =>
  (one.failing?.sequence ?? Number.MAX_SAFE_INTEGER) - (next.failing?.sequence ?? Number.MAX_SAFE_INTEGER) ||
  (one.delivered?.sequence ?? 0) - (next.delivered?.sequence ?? 0)

const exceptionFamily = (reader: Db) =>
  Effect.map(
    Effect.forEach(
      modes.flatMap((mode) => ExceptionKind.literals.map((kind) => ({ mode, kind }))),
      ({ kind, mode }) =>
        Effect.zipRight(
          eventLoopTurn,
          Effect.map(countOpenOfKind(reader, mode, kind), (count): Measured => [{ mode, kind }, count])
        ),
      { concurrency: 1 }
    ),
    (counts) => gauge("tilld_open_exceptions", `Open exceptions. At most ${countLimit} of a kind are counted.`, counts)
  )

const endpointFamilies = (outcomes: ReadonlyArray<EndpointOutcome>, now: number) => {
  const shown = [...outcomes].sort(byNeed).slice(0, named)
  const labelsOf = ({ endpoint, mode }: EndpointOutcome) => ({ endpoint, mode })
  const isFailing = ({ failing }: EndpointOutcome) => failing !== undefined
  return [
    gauge(
      "tilld_webhook_failing_endpoints",
      `Endpoints with a failed attempt and no later success. At most ${mostEndpoints} endpoints are checked.`,
      modes.map((mode) => [{ mode }, outcomes.filter((one) => one.mode === mode && isFailing(one)).length])
    ),
    gauge(
      "tilld_webhook_endpoint_failing_seconds",
      `Age in seconds of the first undelivered event of a failing endpoint, 0 if its time is ahead of the clock: alert on any series. At most ${named} endpoints, longest failing first.`,
      shown.map((one) => [labelsOf(one), one.failing && Math.max(0, now - one.failing.at) / 1000])
    ),
    gauge(
      "tilld_webhook_endpoint_last_success_timestamp_seconds",
      "Unix time of the last successful delivery to an endpoint; for the same endpoints.",
      shown.map((one) => [labelsOf(one), one.delivered && one.delivered.at / 1000])
    )
  ]
}

/** Metrics of open exceptions and of endpoints. */
export const attentionFamilies = Effect.fnUntraced(function* (reader: Db) {
  const exceptions = yield* exceptionFamily(reader)
  const outcomes = yield* outcomesOf(reader)
  return [exceptions, ...endpointFamilies(outcomes, yield* Clock.currentTimeMillis)]
})
