import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { text } from "../Domain/text.ts"
import { withStatus } from "../Domain/withStatus.ts"

const optional = { exact: true } as const

const flag = (description: string) => Schema.Boolean.annotations({ description })

const count = (description: string) => Schema.Number.pipe(Schema.int({ jsonSchema: { type: "integer", description } }))

export const Alive = Schema.Struct({ alive: Schema.Literal(true) }).annotations({ identifier: "Alive" })

/** What an operator's probes and a load balancer ask. `ready` is what decides between 200 and 503. */
export const Readiness = Schema.Struct({
  ready: flag("Whether every chain is."),
  chains: Schema.Array(
    Schema.Struct({
      chain: ChainName,
      mode: Mode,
      ready: flag("Whether it has been read up to its head."),
      head: Schema.optionalWith(count("The block that it has been read up to."), optional),
      lagBlocks: Schema.optionalWith(count("How many blocks that is behind its providers."), optional),
      reason: Schema.optionalWith(text("What is wrong, where something is."), optional),
      providers: Schema.Array(
        Schema.Struct({
          host: text("Without what is secret in its URL."),
          healthy: flag("Whether it is asked."),
          reason: Schema.optionalWith(text("Why it was put aside."), optional)
        })
      )
    })
  ),
  dispatcher: Schema.Struct({
    due: count("Webhook deliveries that are due."),
    oldestDueMillis: count("How long the oldest of them has been, in milliseconds.")
  })
}).annotations({ identifier: "Readiness", description: "How far each chain has been read, and what waits." })

/** Open to everybody: nothing here tells of a merchant. */
export const HealthApi = HttpApiGroup.make("health")
  .add(HttpApiEndpoint.get("alive", "/healthz").addSuccess(Alive))
  .add(HttpApiEndpoint.get("ready", "/readyz").addSuccess(Readiness).addSuccess(withStatus(503, Readiness)))
