/**
 * The log of API requests, which the portal shows. `respond.ts` notes each request that a key authenticated, in memory;
 * a worker stores what was noted once a second. It never delays or fails a request: what does not fit, and what the
 * store cannot take, is dropped and counted. `Housekeeping` deletes the old rows.
 */
import { Chunk, Context, Effect, Layer, Queue } from "effect"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { cutToBytes } from "../lib/text.ts"
import { Writer } from "../Sql.ts"
import { Metrics } from "../Telemetry/Metrics.ts"
import { Workers } from "../Telemetry/Workers.ts"
import type { HttpReply } from "./HttpReply.ts"
import * as Repo from "./RequestLogRepo.ts"
import { mostBytes, type Redact } from "./redacted.ts"

interface ErrorText {
  readonly error?: { readonly code?: string; readonly message?: string }
}

/** The error of a reply. */
const errorIn = ({ rest, status, text }: HttpReply) => {
  // The body of every error is JSON that tilld made.
  const { error } = status < 400 || rest !== undefined ? {} : (JSON.parse(text) as ErrorText)
  const { code = null, message } = error ?? {}
  return { errorCode: code, errorMessage: message === undefined ? null : cutToBytes(message, mostBytes, "…") }
}

/** What `respond` records of a request that a key authenticated. */
export interface AnsweredRequest {
  readonly id: string
  /** Unix milliseconds. */
  readonly at: number
  readonly key: ApiKey
  readonly method: string
  /** With parameters by name. */
  readonly path: string
  readonly seconds: number
  /** The JSON of its body, with what the log keeps of it; undefined where there was none. */
  readonly sent: { readonly payload: unknown; readonly redact: Redact } | undefined
}

export const loggedRequest = (
  { at, id, key, method, path, seconds, sent }: AnsweredRequest,
  reply: HttpReply
): Repo.LoggedRequest => ({
  id,
  at,
  account: key.account,
  mode: key.mode,
  key: key.id,
  method,
  path,
  status: reply.status,
  durationMicros: Math.round(seconds * 1e6),
  ...errorIn(reply),
  request: sent === undefined ? null : sent.redact(sent.payload, reply.status < 400)
})

/** Notes a request. */
export type NoteRequest = (row: () => Repo.LoggedRequest) => void

/** Maximum number of requests per second. All but a load test are far below; beyond it logging costs too much. */
const mostASecond = 1_000
/** Rows of one command of the writer: other commands run in between. */
const batchSize = 100

export class RequestLog extends Context.Tag("tilld/Http/RequestLog")<
  RequestLog,
  {
    /** Notes a request. Its row is made only where there is room for it. */
    readonly note: NoteRequest
    /** Worker: stores what was noted. The end of the layer stores it too. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.scoped(
    RequestLog,
    Effect.gen(function* () {
      const writer = yield* Writer
      const { requestsNotLogged } = yield* Metrics
      const heartbeat = (yield* Workers).worker("request log", "1 second")
      const noted = yield* Queue.sliding<void>(1)
      let waiting: Array<Repo.LoggedRequest> = []

      const store = Effect.suspend(() => {
        const taken = Chunk.unsafeFromArray(waiting)
        waiting = []
        return Effect.forEach(
          Chunk.chunksOf(taken, batchSize),
          (batch) =>
            Effect.catchTag(writer.write(Repo.insert(Chunk.toReadonlyArray(batch))), "StoreUnavailable", () =>
              Effect.sync(() => requestsNotLogged.inc(batch.length))
            ),
          { concurrency: 1, discard: true }
        )
      })

      yield* Effect.addFinalizer(() => store)

      return {
        note: (row) => {
          if (waiting.length >= mostASecond) return requestsNotLogged.inc()
          if (waiting.push(row()) === 1) noted.unsafeOffer(undefined)
        },
        run: Effect.forever(Effect.zipRight(Queue.take(noted), Effect.delay(heartbeat(store), "1 second")))
      }
    })
  )
}
