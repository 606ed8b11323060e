import { Effect } from "effect"
import { answer, type Handlers } from "../Http/Handler.ts"
import { alive, makeReport, statusOf } from "../Http/health.ts"
import type { OperatorHealthApi } from "./Api.ts"

/** Health with reasons, providers and what waits. */
export const operatorHealthHandlers = Effect.map(
  makeReport,
  (report): Handlers<typeof OperatorHealthApi> => ({
    alive: () => Effect.succeed(alive),
    ready: () => Effect.map(report, (body) => answer(body, statusOf(body)))
  })
)
