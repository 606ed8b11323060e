import { Effect, Schema } from "effect"
import { askDaemon } from "./askDaemon.ts"
import { type Common, controlTargetOf } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"

/**
 * Carries out a request and prints its result on standard output: as JSON with `--json`, otherwise as `render` words it.
 * What `explain` adds goes to standard error. Fails as `askDaemon` does.
 */
export const printResult = Effect.fn("commands.printResult")(function* <
  Request extends { readonly _tag: string },
  I,
  A,
  AI,
  E,
  EI,
  RenderE = never,
  RenderR = never
>(
  options: Common,
  command: string,
  request: Request & Schema.SerializableWithResult<Request, I, never, A, AI, E, EI, never>,
  render: (result: A) => string | Effect.Effect<string, RenderE, RenderR>,
  explain: (result: A) => string | undefined = () => undefined
) {
  const result = yield* askDaemon(yield* controlTargetOf(options), command, request)
  const encoded = yield* Effect.orDie(Schema.serializeSuccess(request, result))
  if (options.json) return yield* print(JSON.stringify(encoded))
  const text = render(result)
  yield* print(typeof text === "string" ? text : yield* text)
  const explanation = explain(result)
  if (explanation !== undefined) yield* complain(explanation)
})
