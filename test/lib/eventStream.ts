import { get, type IncomingMessage } from "node:http"
import { Effect, Queue } from "effect"

/** A message of a stream of events. */
export interface Streamed {
  readonly id: string
  readonly event: string
  readonly data: string
}

const field = (block: string, name: string): string => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? ""

/** Opens a stream of events, until the scope ends. Signs of life are left out. */
export const openStream = ({ key, url }: { readonly key: string; readonly url: string }, after?: string) =>
  Effect.gen(function* () {
    const messages = yield* Queue.unbounded<Streamed>()
    const comments = yield* Queue.unbounded<string>()
    const ended = yield* Queue.unbounded<void>()
    const headers = { "x-api-key": key, ...(after === undefined ? {} : { "last-event-id": after }) }
    const response = yield* Effect.acquireRelease(
      Effect.async<IncomingMessage>((resume) => {
        const asked = get(`${url}/v1/events/stream`, { headers, agent: false }, (answer) =>
          resume(Effect.succeed(answer))
        )
        asked.on("error", () => undefined)
      }),
      (answer) => Effect.sync(() => answer.destroy())
    )
    let rest = ""
    response.setEncoding("utf8").on("data", (piece: string) => {
      const [last = "", ...whole] = (rest + piece).split("\n\n").reverse()
      rest = last
      for (const block of whole.reverse()) {
        const comment = /^: (.*)$/m.exec(block)?.[1]
        if (comment !== undefined) comments.unsafeOffer(comment)
        if (field(block, "id") === "") continue
        messages.unsafeOffer({ id: field(block, "id"), event: field(block, "event"), data: field(block, "data") })
      }
    })
    response.on("error", () => undefined).on("close", () => ended.unsafeOffer(undefined))
    return {
      response,
      /** The next message, the one that says where the stream begins too. */
      next: Queue.take(messages),
      comment: Queue.take(comments),
      ended: Queue.take(ended),
      isEmpty: Queue.isEmpty(messages)
    }
  })
