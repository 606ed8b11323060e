import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { exposition } from "../../src/Admin/metrics.ts"
import { Counter, Histogram } from "../../src/Telemetry/instruments.ts"
import { readScrape } from "../lib/prometheus.ts"

describe("the text format", () => {
  it("is as it is published", () => {
    const counter = new Counter({ name: "a_total", help: 'one \\ line\nor "two"', labels: ["x", "y"] })
    counter.add(["1", 'C:\\DIR "quoted"\n'])
    counter.add(["2", ""], 3)
    const histogram = new Histogram({ name: "b_seconds", help: "times" }, [0.1, 1])
    for (const value of [0.1, 0.5, 7]) histogram.observe(value)
    const none = new Counter({ name: "c_total", help: "no value", labels: ["x"] })
    expect(exposition([counter.family, histogram.family, none.family])).toBe(
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
`
    )
  })

  it("round-trips any labels and numbers", () =>
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ unit: "binary" })),
        fc.oneof(fc.double({ noNaN: true }), fc.integer()),
        (texts, value) => {
          const samples = texts.map((text) => ({ labels: { text }, value }))
          const read = readScrape(
            exposition([{ name: "a", help: "x", type: "gauge", samples: [{ labels: {}, value: 1 }, ...samples] }])
          )
          expect(read.samples.slice(1).map(({ labels }) => labels["text"])).toEqual(texts)
          for (const sample of read.samples.slice(1)) expect(sample.value).toBe(value + 0)
        }
      )
    ))

  it("has zeros for counters and histograms without labels", () => {
    const text = exposition([
      new Counter({ name: "a_total", help: "x" }).family,
      new Histogram({ name: "b_seconds", help: "x" }, [1]).family
    ])
    expect(readScrape(text).samples.map(({ name, value }) => [name, value])).toEqual([
      ["a_total", 0],
      ["b_seconds_bucket", 0],
      ["b_seconds_bucket", 0],
      ["b_seconds_sum", 0],
      ["b_seconds_count", 0]
    ])
  })
})
