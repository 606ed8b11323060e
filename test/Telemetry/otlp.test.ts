import { createServer } from "node:http"
import { describe, expect } from "@effect/vitest"
import { Array as Arr, Effect, Layer, Logger, Queue, TestClock } from "effect"
import { exportLayer } from "../../src/Telemetry/logging.ts"
import { makeClient } from "../lib/api.ts"
import { localChain, makeHome, serve } from "../lib/daemon.ts"
import { listenHere } from "../lib/loopback.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { silentListener } from "../lib/silentListener.ts"

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number }
}

interface Batch {
  readonly path: string
  readonly text: string
  readonly spans: ReadonlyArray<{ name: string; traceId: string; parentSpanId?: string; attributes: Array<Attribute> }>
}

/** An OpenTelemetry collector that hands over what it gets. It responds with 200 until another status is set. */
const startCollector = Effect.gen(function* () {
  let status = 200
  const batches = yield* Queue.unbounded<Batch>()
  const server = createServer((request, response) => {
    const pieces: Array<Buffer> = []
    request.on("data", (piece: Buffer) => pieces.push(piece))
    request.on("end", () => {
      const text = Buffer.concat(pieces).toString()
      const { resourceSpans: [traces] = [] } = JSON.parse(text)
      batches.unsafeOffer({ path: request.url ?? "", text, spans: traces?.scopeSpans[0].spans ?? [] })
      response.writeHead(status).end("{}")
    })
  })
  const { port } = yield* listenHere(server)
  /** The first batch that `wanted` finds something in. */
  const until = <A>(wanted: (batch: Batch) => A | undefined): Effect.Effect<A> =>
    Effect.flatMap(Queue.take(batches), (batch) => {
      const found = wanted(batch)
      return found === undefined ? until(wanted) : Effect.succeed(found)
    })
  const answer = (next: number) => {
    status = next
  }
  return { answer, until, url: `http://127.0.0.1:${port}` }
})

const attributesOf = ({ attributes }: { readonly attributes: ReadonlyArray<Attribute> }) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]))

describe("OpenTelemetry", () => {
  liveTest("gets the daemon's log, and for each request a trace with its id, route, status and work", function* () {
    const collector = yield* startCollector
    const home = yield* makeHome({ chains: new Map([["base", yield* localChain("base")]]) })
    const daemon = yield* serve(home, undefined, { TILLD_TELEMETRY__OTLP_ENDPOINT: `${collector.url}/` })
    yield* collector.until(({ path, text }) => (path === "/v1/logs" && text.includes('"listening"') ? true : undefined))
    const call = yield* makeClient(daemon.url)
    const { headers } = yield* call("GET", "/v1/payments/pay_unknown?x=secret", { key: daemon.key })
    const [request, spans] = yield* collector.until(({ spans }) => {
      const found = spans.find((span) => attributesOf(span)["tilld.request_id"] === headers["x-request-id"])
      return found === undefined ? undefined : ([found, spans] as const)
    })
    expect(attributesOf(request)).toMatchObject({
      "http.request.method": "GET",
      "http.route": "/v1/payments/:id",
      "http.response.status_code": 400
    })
    expect(request.parentSpanId).toBeUndefined()
    expect(JSON.stringify(spans)).not.toMatch(/svc_test_|x=secret/)
    // A worker's step is a trace of its own: one that held all of them would never end.
    const order = { merchantRef: "order 1", chain: "base", currency: "ETH", amount: "5" }
    expect(yield* daemon.call("POST", "/v1/payments", order)).toMatchObject({ status: 201 })
    const round = yield* collector.until(({ spans }) => spans.find(({ name }) => name === "Watcher.round"))
    expect(round.parentSpanId).toBeUndefined()
  })

  /** Runs `work` with an exporter to `url`; returns the log lines that are warnings, or report a recovery. */
  const exporting = <A, E, R>(url: string, work: (lines: Queue.Dequeue<string>) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(Queue.unbounded<string>(), (lines) => {
      const logger = Logger.make((entry) => void lines.unsafeOffer(Logger.logfmtLogger.log(entry)))
      return work(lines).pipe(
        Effect.provide(
          Layer.provideMerge(exportLayer({ otlpEndpoint: url }), Logger.replace(Logger.defaultLogger, logger))
        )
      )
    })

  const spans = (count: number) => Effect.forEach(Arr.range(1, count), () => Effect.void.pipe(Effect.withSpan("span")))

  clockTest("a collector that never responds holds four batches at once, and further ones are dropped", function* () {
    const silent = yield* silentListener()
    yield* exporting(`http://127.0.0.1:${silent.port}`, (lines) =>
      Effect.gen(function* () {
        yield* spans(5_000)
        const line = yield* Queue.take(lines)
        expect(line).toMatch("cannot be exported, and are dropped")
        expect(line).toMatch(`reason="too many are under way" host=127.0.0.1:${silent.port}`)
        expect(line.length).toBeLessThan(300)
        yield* silent.hears(4)
        expect(silent.counts().heard).toBe(4)
      })
    )
  })

  clockTest(
    "a collector that refuses is left alone for a minute, and the log says so once, and when it works again",
    function* () {
      const collector = yield* startCollector
      const isTraces = ({ path }: Batch) => (path === "/v1/traces" ? true : undefined)
      collector.answer(400)
      yield* exporting(collector.url, (lines) =>
        Effect.gen(function* () {
          for (const _ of [1, 2]) {
            yield* spans(1_000)
            yield* collector.until(isTraces)
            expect(yield* Queue.take(lines)).toMatch("cannot be exported, and are dropped")
            collector.answer(200)
            yield* TestClock.adjust("1 minute")
            yield* spans(1_000)
            yield* collector.until(isTraces)
            expect(yield* Queue.take(lines)).toMatch("spans and log lines are exported again")
            collector.answer(400)
          }
        })
      )
    }
  )
})
