import { Effect } from "effect"
import { Chains } from "../Chains.ts"
import { Dispatcher } from "../Webhooks/Dispatcher.ts"
import type { HealthApi } from "./Api.ts"
import { answer, type Handlers } from "./Handler.ts"

export const healthHandlers = Effect.gen(function* () {
  const chains = yield* Chains
  const dispatcher = yield* Dispatcher

  const handlers: Handlers<typeof HealthApi> = {
    alive: () => Effect.succeed(answer({ alive: true })),

    ready: () =>
      Effect.gen(function* () {
        const networks = yield* chains.health
        const ready = networks.every((network) => network.ready)
        const body = { ready, chains: networks, dispatcher: yield* dispatcher.health }
        return answer(body, { status: ready ? 200 : 503 })
      })
  }
  return handlers
})
