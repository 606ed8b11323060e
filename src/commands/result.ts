import { Effect, Schema } from "effect"
import { ask } from "./ask.ts"
import { type Common, loadSettings } from "./Invocation.ts"
import { print } from "./Output.ts"

/** Asks for something, here or of the daemon, and prints what came of it: as JSON, or as `render` words it. */
export const printResult = Effect.fn("commands.printResult")(function* <
  Request extends { readonly _tag: string },
  I,
  A,
  AI,
  E,
  EI
>(
  options: Common,
  command: string,
  request: Request & Schema.SerializableWithResult<Request, I, never, A, AI, E, EI, never>,
  render: (result: A) => string
) {
  const { settings } = yield* loadSettings(options)
  const result = yield* ask(settings, command, request)
  const encoded = yield* Effect.orDie(Schema.serializeSuccess(request, result))
  yield* print(options.json ? JSON.stringify(encoded) : render(result))
})
