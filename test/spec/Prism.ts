import { expect } from "@effect/vitest"
import { Effect, Either } from "effect"
import { type Answered, type Call, makeClient, type Sent } from "../lib/api.ts"
import { start } from "../lib/processes.ts"

interface Violation {
  /** `["request" | "response", …]` */
  readonly location: ReadonlyArray<string>
  readonly message: string
}

const violationsIn = ({ headers }: Answered): ReadonlyArray<Violation> => {
  const { "sl-violations": violations } = headers
  return typeof violations === "string" ? JSON.parse(violations) : []
}

/** An answer must be as the document says; a request need not be if it was refused. */
const isAsDocumented = (answer: Answered): void => {
  const wasRefused = answer.status >= 400
  const wrong = violationsIn(answer).filter(({ location: [side] }) => side === "response" || !wasRefused)
  expect(wrong, answer.text).toEqual([])
}

/** Whether Prism passes it on: a body that is not JSON it refuses by itself, and of a path like `/%ZZ` it dies. */
const isForPrism = (path: string, sent: Sent | undefined): boolean =>
  sent?.body === undefined && Either.isRight(Either.try(() => decodeURIComponent(path)))

/**
 * A client of the API at `url`. Where TILLD_PRISM names the program of Prism and TILLD_PRISM_DOCUMENT the API document, what
 * it sends goes through a proxy that compares both ways with the document.
 */
export const comparedClient = (url: string) =>
  Effect.gen(function* () {
    const direct = yield* makeClient(url)
    const { TILLD_PRISM: prism, TILLD_PRISM_DOCUMENT: document } = process.env
    if (prism === undefined || document === undefined) return direct
    const proxy = yield* start(prism, ["proxy", document, url, "--host", "127.0.0.1", "--port", "0", "--no-cors"])
    const line = yield* proxy.line("Prism is listening on ")
    const [base = expect.fail(line)] = /http:\/\/[0-9.:]+/.exec(line) ?? []
    const compared = yield* makeClient(base)
    const call: Call = (method, path, sent) =>
      isForPrism(path, sent)
        ? Effect.tap(compared(method, path, sent), (answer) => Effect.sync(() => isAsDocumented(answer)))
        : direct(method, path, sent)
    return call
  })
