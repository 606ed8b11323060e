/**
 * Traces and logs to an OpenTelemetry collector, by OTLP over HTTP in JSON. Loaded only where `telemetry.otlp_endpoint` is
 * set. A collector that is slow or down costs its own batches, never a request and never more than a few megabytes.
 */
import * as OtlpLogger from "@effect/opentelemetry/OtlpLogger"
import * as OtlpSerialization from "@effect/opentelemetry/OtlpSerialization"
import * as OtlpTracer from "@effect/opentelemetry/OtlpTracer"
import { HttpClient, HttpClientError, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { Effect, Layer, Option } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { makeHttpClient, RequestFailed } from "../lib/httpClient.ts"
import { LogLimit } from "./LogLimit.ts"

/** Of one batch: from its sending to its answer. */
const deadline = "5 seconds"

/** Batches that are under way at once, each of at most 1,000 spans or lines. A further one is dropped. */
const atOnce = 4

/** The exporters do not repeat this one, unlike other failures: they pause for a minute and drop what comes meanwhile. */
const givenUp = (request: HttpClientRequest.HttpClientRequest, description: string) =>
  new HttpClientError.RequestError({ request, reason: "Encode", description })

/** Why a batch failed, without the batch, which is part of the error. */
const reasonOf = (error: HttpClientError.HttpClientError): string => {
  if (error._tag === "ResponseError") return `status ${error.response.status}`
  const code = error.cause instanceof RequestFailed ? error.cause.code : ""
  return error.description ?? (code || "no connection")
}

/** Of an answer, which is not looked at. */
const maxBytes = 64 * 1024

/** The client that all outgoing requests share, in the form that the exporters need. */
const sender = Effect.map(makeHttpClient("30 seconds"), (client) =>
  HttpClient.make((request, url) => {
    const { body, headers } = request
    const bytes = body._tag === "Uint8Array" ? { body: body.body } : {}
    return client.send({ url, method: "POST", headers, ...bytes, maxBytes }).pipe(
      Effect.map((response) => {
        const status = response.resume().statusCode ?? 0
        return HttpClientResponse.fromWeb(
          request,
          new Response(null, { status: status >= 200 && status <= 599 ? status : 500 })
        )
      }),
      Effect.mapError((cause) => new HttpClientError.RequestError({ request, reason: "Transport", cause }))
    )
  })
)

/**
 * The client of the exporters, which themselves limit neither the time of a request nor how many run at once: a collector
 * that never answers would fill the memory. It logs, at most once a minute, that exporting fails, and when it works again.
 */
const exportClient = Layer.scoped(
  HttpClient.HttpClient,
  Effect.gen(function* () {
    const slots = yield* Effect.makeSemaphore(atOnce)
    const limited = new LogLimit({ perKey: 1, inAll: 1 })
    let works = true
    const failed = (error: HttpClientError.HttpClientError) =>
      Effect.suspend(() => {
        works = false
        const line = Effect.annotateLogs(
          Effect.logWarning("spans and log lines cannot be exported, and are dropped: check the collector"),
          { host: new URL(error.request.url).host, reason: reasonOf(error) }
        )
        return limited.write("", line)
      })
    const succeeded = Effect.suspend(() => {
      if (works) return Effect.void
      works = true
      return Effect.logInfo("spans and log lines are exported again")
    })
    return HttpClient.transform(HttpClient.filterStatusOk(yield* sender), (send, request) =>
      send.pipe(
        Effect.timeoutFail({ duration: deadline, onTimeout: () => givenUp(request, `no answer within ${deadline}`) }),
        slots.withPermitsIfAvailable(1),
        Effect.flatMap(
          Option.match({ onNone: () => givenUp(request, "too many are under way"), onSome: Effect.succeed })
        ),
        Effect.tapBoth({ onFailure: failed, onSuccess: () => succeeded })
      )
    )
  })
)

/** @param endpoint the collector's base URL, to which `/v1/traces` and `/v1/logs` are added */
export const otlpLayer = (endpoint: string) => {
  const url = (path: string) => `${endpoint.replace(/(?<!\/)\/+$/, "")}${path}`
  const resource = { serviceName: "tilld", serviceVersion: packageJson.version }
  return Layer.merge(
    OtlpLogger.layer({ url: url("/v1/logs"), resource }),
    OtlpTracer.layer({ url: url("/v1/traces"), resource })
  ).pipe(Layer.provide(Layer.merge(OtlpSerialization.layerJson, exportClient)))
}
