import { Effect } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import type { EventsApi } from "./Api.ts"
import { EventStreams } from "./EventStreams.ts"

// Proxies such as nginx would buffer what must arrive at once.
const streamHeaders = { "x-accel-buffering": "no" }

export const eventHandlers = Effect.map(
  EventStreams,
  (streams): Handlers<typeof EventsApi> => ({
    stream: ({ headers, key, query: { events } }) =>
      streams.open(key, headers["last-event-id"], events).pipe(
        Effect.map((messages) => answer(messages, { headers: streamHeaders })),
        Effect.catchTag(
          "TooManyStreams",
          ({ limit }) =>
            new ApiError({
              code: "TOO_MANY_STREAMS",
              message: `The account has ${limit} streams of events open, as many as there may be: close one first.`,
              headers: { "retry-after": "30" }
            })
        )
      )
  })
)
