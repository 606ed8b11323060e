import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { ChainName, Mode } from "../Domain/Chain.ts"

const optional = { exact: true } as const

/** What an operator's probes and a load balancer ask. `ready` is what decides between 200 and 503. */
export const Readiness = Schema.Struct({
  ready: Schema.Boolean,
  chains: Schema.Array(
    Schema.Struct({
      chain: ChainName,
      mode: Mode,
      ready: Schema.Boolean,
      head: Schema.optionalWith(Schema.Int, optional),
      lagBlocks: Schema.optionalWith(Schema.Int, optional),
      reason: Schema.optionalWith(Schema.String, optional),
      providers: Schema.Array(
        Schema.Struct({
          host: Schema.String,
          healthy: Schema.Boolean,
          reason: Schema.optionalWith(Schema.String, optional)
        })
      )
    })
  ),
  dispatcher: Schema.Struct({ due: Schema.Int, oldestDueMillis: Schema.Int })
}).annotations({ identifier: "Readiness" })

/** Open to everybody: nothing here tells of a merchant. */
export const HealthApi = HttpApiGroup.make("health")
  .add(HttpApiEndpoint.get("alive", "/healthz").addSuccess(Schema.Struct({ alive: Schema.Literal(true) })))
  .add(HttpApiEndpoint.get("ready", "/readyz").addSuccess(Readiness).addSuccess(Readiness, { status: 503 }))
