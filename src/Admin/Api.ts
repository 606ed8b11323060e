import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "@effect/platform"
import { Schema } from "effect"
import { withStatus } from "../Domain/ApiError.ts"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { ShownCondition } from "../Domain/Condition.ts"
import { aliveEndpoint } from "../Http/Api.ts"
import { maybe } from "../lib/annotations.ts"

const count = Schema.Number.pipe(Schema.int())
const reason = maybe(Schema.String)

/** The public readiness, plus reasons, providers, the delivery backlog and what is wrong. */
const FullReadiness = Schema.Struct({
  ready: Schema.Boolean,
  chains: Schema.Array(
    Schema.Struct({
      chain: ChainName,
      mode: Mode,
      ready: Schema.Boolean,
      /** The last block that was read, and by how many blocks it lags behind the providers' head. */
      head: maybe(count),
      lagBlocks: maybe(count),
      /** The last head's time less this machine's clock when it was read. */
      headAheadSeconds: maybe(Schema.Number),
      /** For how long no other provider has responded, where one of several decides alone. */
      decidesAloneSeconds: maybe(count),
      reason,
      /** Named by host, without the secrets of its URL. The reason says why a provider is unhealthy. */
      providers: Schema.Array(Schema.Struct({ host: Schema.String, healthy: Schema.Boolean, reason }))
    })
  ),
  workers: Schema.Array(Schema.Struct({ name: Schema.String, ready: Schema.Boolean, reason })),
  /** Due webhook deliveries, and the age of the oldest in seconds. */
  dispatcher: Schema.Struct({ due: count, oldestDueMillis: count }),
  /** What is wrong, worst first. It does not affect `ready`. */
  conditions: Schema.Array(ShownCondition)
}).annotations({ identifier: "FullReadiness" })

/** Health with reasons, which name hosts, ports and errors: only for a listener that the public cannot reach. */
export const OperatorHealthApi = HttpApiGroup.make("health")
  .add(aliveEndpoint)
  .add(HttpApiEndpoint.get("ready", "/readyz").addSuccess(FullReadiness).addSuccess(withStatus(503, FullReadiness)))

/** Metrics of the whole installation, without a key: only for a listener that the public cannot reach. */
export const MetricsApi = HttpApiGroup.make("metrics").add(
  HttpApiEndpoint.get("metrics", "/metrics").addSuccess(
    HttpApiSchema.Text({ contentType: "text/plain; version=0.0.4; charset=utf-8" })
  )
)

/** What the operator's own listener serves. */
export const AdminApi = HttpApi.make("tilld-admin").add(OperatorHealthApi).add(MetricsApi)
