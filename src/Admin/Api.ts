import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "@effect/platform"
import { Schema } from "effect"
import { ChainName, Mode } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { withStatus } from "../Domain/withStatus.ts"
import { aliveEndpoint } from "../Http/Api.ts"

const optional = { exact: true } as const
const count = Schema.Number.pipe(Schema.int())
const reason = Schema.optionalWith(Schema.String, optional)

/** The readiness that everybody may know, with what is wrong, the providers and what waits. */
const FullReadiness = Schema.Struct({
  ready: Schema.Boolean,
  chains: Schema.Array(
    Schema.Struct({
      chain: ChainName,
      mode: Mode,
      ready: Schema.Boolean,
      /** The block that it has been read up to, and how many blocks that is behind its providers. */
      head: Schema.optionalWith(count, optional),
      lagBlocks: Schema.optionalWith(count, optional),
      reason,
      /** Each by its host, without what is secret in its URL; the reason is why it is put aside. */
      providers: Schema.Array(Schema.Struct({ host: Schema.String, healthy: Schema.Boolean, reason }))
    })
  ),
  workers: Schema.Array(Schema.Struct({ name: Schema.String, ready: Schema.Boolean, reason })),
  /** Webhook deliveries that are due, and for how long the oldest of them has been. */
  dispatcher: Schema.Struct({ due: count, oldestDueMillis: count }),
  /** Those that have almost stored what they may; everything is ready all the same. */
  accounts: Schema.Array(
    Schema.Struct({ account: AccountId, usedBytes: count, quotaBytes: count, reason: Schema.String })
  )
}).annotations({ identifier: "FullReadiness" })

/** Health with reasons. They name hosts, ports and errors: only for a listener that the public cannot reach. */
export const OperatorHealthApi = HttpApiGroup.make("health")
  .add(aliveEndpoint)
  .add(HttpApiEndpoint.get("ready", "/readyz").addSuccess(FullReadiness).addSuccess(withStatus(503, FullReadiness)))

/** Tells of the whole installation, and asks nobody for a key: only for a listener that the public cannot reach. */
export const MetricsApi = HttpApiGroup.make("metrics").add(
  HttpApiEndpoint.get("metrics", "/metrics").addSuccess(
    HttpApiSchema.Text({ contentType: "text/plain; version=0.0.4; charset=utf-8" })
  )
)

/** What the operator's own listener serves. */
export const AdminApi = HttpApi.make("tilld-admin").add(OperatorHealthApi).add(MetricsApi)
