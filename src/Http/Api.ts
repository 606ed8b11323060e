import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "@effect/platform"
import { Schema } from "effect"
import { withStatus } from "../Domain/ApiError.ts"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { text } from "../lib/annotations.ts"

const flag = (description: string) => Schema.Boolean.annotations({ description })

export const Alive = Schema.Struct({ alive: Schema.Literal(true) }).annotations({ identifier: "Alive" })

/** For a load balancer: whether the process answers. */
export const aliveEndpoint = HttpApiEndpoint.get("alive", "/healthz").addSuccess(Alive)

/** The public health. `ready` decides between 200 and 503; only the operator sees reasons. */
export const Readiness = Schema.Struct({
  ready: flag("Whether every chain and every worker is."),
  chains: Schema.Array(
    Schema.Struct({
      chain: ChainName,
      mode: Mode,
      ready: flag("Whether it is read as it should be.")
    })
  ).annotations({ description: "Every chain that is configured, in each mode." }),
  workers: Schema.Array(
    Schema.Struct({
      name: text("What it looks after."),
      ready: flag("Whether it goes on: what it began last has not taken three times as long as it may.")
    })
  ).annotations({ description: "What else works by itself." })
}).annotations({ identifier: "Readiness", description: "Whether everything works as it should." })

/** Public: nothing here names a merchant, a provider or a fault. */
export const HealthApi = HttpApiGroup.make("health")
  .add(aliveEndpoint)
  .add(HttpApiEndpoint.get("ready", "/readyz").addSuccess(Readiness).addSuccess(withStatus(503, Readiness)))

/** The API's document, for programs. Public. */
export const DocumentsApi = HttpApiGroup.make("documents").add(
  HttpApiEndpoint.get("openapi", "/openapi.json").addSuccess(
    HttpApiSchema.Text({ contentType: "application/json" }).annotations({
      jsonSchema: { type: "object", description: "This document, OpenAPI 3.1." }
    })
  )
)
