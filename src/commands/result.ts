import { Effect, Schema } from "effect"
import { askDaemon } from "./askDaemon.ts"
import { type Common, placeOf } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"

/**
 * Asks for something, here or of the daemon, and prints what came of it: as JSON, or as `render` words it, for programs
 * to read too. What `explain` adds is for people, and goes to standard error.
 */
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
  render: (result: A) => string,
  explain: (result: A) => string | undefined = () => undefined
) {
  const result = yield* askDaemon(yield* placeOf(options), command, request)
  const encoded = yield* Effect.orDie(Schema.serializeSuccess(request, result))
  if (options.json) return yield* print(JSON.stringify(encoded))
  yield* print(render(result))
  const explanation = explain(result)
  if (explanation !== undefined) yield* complain(explanation)
})
