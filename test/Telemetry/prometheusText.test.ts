import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Counter, Histogram, Registry } from "prom-client"
import { exposition } from "../../src/Admin/metrics.ts"
import { gauge, single } from "../../src/Admin/storeFamilies.ts"
import { readScrape } from "../lib/prometheus.ts"

it.effect("the text format is as it is published, without gauges that have no value", () =>
  Effect.gen(function* () {
    const registry = new Registry()
    const registers = [registry]
    const counter = new Counter({ name: "a_total", help: 'one \\ line\nor "two"', labelNames: ["x", "y"], registers })
    counter.inc({ x: "1", y: 'C:\\DIR "quoted"\n' })
    counter.inc({ x: "2", y: "" }, 3)
    const histogram = new Histogram({ name: "b_seconds", help: "times", buckets: [0.1, 1], registers })
    for (const value of [0.1, 0.5, 7]) histogram.observe(value)
    const families = [
      gauge("c", "ages", [
        [{ z: "old" }, Number.POSITIVE_INFINITY],
        [{ z: "new" }, undefined],
        [{ z: "none" }, false]
      ]),
      gauge("d", "unknown", single(undefined)),
      gauge("e", "below zero", single(-1.5))
    ]
    const text = yield* exposition(families, registry)
    expect(text.replaceAll("\n\n", "\n")).toBe(
      `# HELP a_total one \\\\ line\\nor "two"
# TYPE a_total counter
a_total{x="1",y="C:\\\\DIR \\"quoted\\"\\n"} 1
a_total{x="2",y=""} 3
# HELP b_seconds times
# TYPE b_seconds histogram
b_seconds_bucket{le="0.1"} 1
b_seconds_bucket{le="1"} 2
b_seconds_bucket{le="+Inf"} 3
b_seconds_sum 7.6
b_seconds_count 3
# HELP c ages
# TYPE c gauge
c{z="old"} +Inf
c{z="none"} 0
# HELP e below zero
# TYPE e gauge
e -1.5
`
    )
    expect(readScrape(text).samples).toHaveLength(10)
  })
)
