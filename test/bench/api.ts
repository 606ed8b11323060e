import { HttpClient, HttpClientRequest } from "@effect/platform"
import { Effect } from "effect"

/** A POST to the daemon on `port`; the body of its 201. Dies of any other answer. */
export const post = <A>(port: number, apiKey: string, path: string, body: unknown) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const request = yield* HttpClientRequest.post(`http://127.0.0.1:${port}${path}`).pipe(
      HttpClientRequest.setHeader("x-api-key", apiKey),
      HttpClientRequest.bodyJson(body)
    )
    const response = yield* client.execute(request)
    if (response.status !== 201) return yield* Effect.dieMessage(`POST ${path}: ${yield* response.text}`)
    return (yield* response.json) as A
  }).pipe(Effect.orDie)
