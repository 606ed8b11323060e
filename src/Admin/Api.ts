import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "@effect/platform"
import { HealthApi } from "../Http/Api.ts"

/** Tells of the whole installation, and asks nobody for a key: only for a listener that the public cannot reach. */
export const MetricsApi = HttpApiGroup.make("metrics").add(
  HttpApiEndpoint.get("metrics", "/metrics").addSuccess(
    HttpApiSchema.Text({ contentType: "text/plain; version=0.0.4; charset=utf-8" })
  )
)

/** What the operator's own listener serves. */
export const AdminApi = HttpApi.make("tilld-admin").add(HealthApi).add(MetricsApi)
