/** What the process that listens at the port of a configuration says of itself. */
import { Effect, Schema } from "effect"
import { bodyText, makeHttpClient, readBody } from "../lib/httpClient.ts"
import type { SettingsShape } from "../Settings.ts"

export const readinessDeadline = "1 second"
/** Of a readiness report. */
const maxBytes = 1024 * 1024
/** A listener on all addresses answers at this machine's own. */
const everywhere: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" }

/** The host by which this machine reaches a listener. */
export const reachable = (host: string): string => everywhere[host] ?? host

/** Its /readyz, if it has this shape; undefined where none answers so. */
export const readReadiness = <A, I>({ server: { host, port } }: SettingsShape, shape: Schema.Schema<A, I>) =>
  Effect.gen(function* () {
    const name = reachable(host)
    const url = new URL(`http://${name.includes(":") ? `[${name}]` : name}:${port}/readyz`)
    const client = yield* makeHttpClient(readinessDeadline)
    const response = yield* client.send({ url, method: "GET", maxBytes })
    return yield* readBody(response, async (body): Promise<unknown> => JSON.parse(await bodyText(body, maxBytes)))
  }).pipe(
    Effect.scoped,
    Effect.flatMap(Schema.decodeUnknown(shape)),
    Effect.timeout(readinessDeadline),
    Effect.orElseSucceed(() => undefined)
  )
