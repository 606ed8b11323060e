import { get, type IncomingMessage } from "node:http"
import { Effect, Queue } from "effect"

/** Opens a stream of server-sent events until the scope ends; their data in order. Comments are left out. */
export const openEvents = (url: string) =>
  Effect.gen(function* () {
    const data = yield* Queue.unbounded<string>()
    const ended = yield* Queue.unbounded<void>()
    const response = yield* Effect.acquireRelease(
      Effect.async<IncomingMessage>((resume) => {
        const asked = get(url, { agent: false }, (answer) => resume(Effect.succeed(answer)))
        asked.on("error", () => undefined)
      }),
      (answer) => Effect.sync(() => answer.destroy())
    )
    let rest = ""
    response.setEncoding("utf8").on("data", (piece: string) => {
      const blocks = (rest + piece).split("\n\n")
      rest = blocks.pop() ?? ""
      for (const block of blocks) if (block.startsWith("data: ")) data.unsafeOffer(block.slice("data: ".length))
    })
    response.on("error", () => undefined).on("close", () => ended.unsafeOffer(undefined))
    return { response, next: Queue.take(data), ended: Queue.take(ended) }
  })
