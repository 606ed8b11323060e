import { expect } from "@effect/vitest"
import { Effect } from "effect"
import parse from "parse-prometheus-text-format"
import type { Counter } from "prom-client"

type Labels = Readonly<Record<string, string>>

interface Sample {
  readonly name: string
  readonly labels: Labels
  readonly value: number
}

/** A scrape, checked. */
export interface Scrape {
  readonly samples: ReadonlyArray<Sample>
  readonly types: ReadonlyMap<string, string>
  /** Of a name, the one sample that has at least these labels; undefined where there is none. */
  readonly value: (name: string, labels?: Labels) => number | undefined
  /** The values of a label among the samples of a name. */
  readonly labelled: (name: string, label: string) => ReadonlyArray<string | undefined>
}

// The published grammar: prometheus.io/docs/instrumenting/exposition_formats.
const metadata = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/
const sampleLine =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (NaN|[+-]Inf|[-+0-9.e]+)$/
const labelPair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"/g

const number = (text: string): number => (text.endsWith("Inf") ? Number(`${text}inity`) : Number(text))

const unescaped = (text: string) => text.replace(/\\([\\"n])/g, (_, char) => (char === "n" ? "\n" : char))

const readSample = (line: string): Sample => {
  const [, name = "", labels = "", value = ""] = sampleLine.exec(line) ?? expect.fail(`no sample: ${line}`)
  const pairs = [...labels.matchAll(labelPair)].map(([, label = "", text = ""]) => [label, unescaped(text)])
  expect(new Set(pairs.map(([label]) => label)).size, line).toBe(pairs.length)
  return { name, labels: Object.fromEntries(pairs), value: number(value) }
}

const keyOf = ({ labels, name }: Sample) => JSON.stringify([name, Object.entries(labels).sort()])

/** Every bucket holds those below it, and the last one all. */
const checkHistogram = (name: string, samples: ReadonlyArray<Sample>) => {
  const of = (suffix: string) => samples.filter((sample) => sample.name === name + suffix)
  for (const count of of("_count")) {
    const same = of("_bucket").filter(({ labels: { le: _, ...labels } }) =>
      Object.entries(labels).every(([label, value]) => count.labels[label] === value)
    )
    const bounds = same.map(({ labels }) => number(labels["le"] ?? ""))
    expect(bounds, name).toEqual([...bounds].sort((a, b) => a - b))
    expect(bounds.at(-1), name).toBe(Number.POSITIVE_INFINITY)
    const counts = same.map(({ value }) => value)
    expect(counts, name).toEqual([...counts].sort((a, b) => a - b))
    expect(counts.at(-1), name).toBe(count.value)
  }
  expect(of("_sum").length, name).toBe(of("_count").length)
}

/** Reads a scrape by the grammar, and compares it with what another parser reads; fails where anything is not in order. */
export const readScrape = (text: string): Scrape => {
  expect(text.endsWith("\n")).toBe(true)
  const types = new Map<string, string>()
  const helps = new Set<string>()
  const samples: Array<Sample> = []
  let family = ""
  for (const line of text.split("\n").filter((line) => line !== "")) {
    const [, kind, name = "", rest = ""] = metadata.exec(line) ?? []
    if (kind === "HELP") {
      // Each family in one piece, with its description and its type first.
      expect(helps.has(name), line).toBe(false)
      expect(rest, line).not.toBe("")
      helps.add(name)
      family = name
    } else if (kind === "TYPE") {
      expect(name, line).toBe(family)
      expect(types.has(name), line).toBe(false)
      expect(["counter", "gauge", "histogram"], line).toContain(rest)
      types.set(name, rest)
    } else {
      const sample = readSample(line)
      const suffix = types.get(family) === "histogram" ? /_(bucket|sum|count)$/ : /$^/
      expect(sample.name.replace(suffix, ""), line).toBe(family)
      samples.push(sample)
    }
  }
  expect([...types.keys()]).toEqual([...helps])
  expect(new Set(samples.map(keyOf)).size, "each series once").toBe(samples.length)
  for (const [name, type] of types) {
    expect(name.endsWith("_total"), name).toBe(type === "counter")
    if (type === "histogram") checkHistogram(name, samples)
  }

  const read = parse(text)
  expect(read.map(({ name, type }) => [name, type.toLowerCase()])).toEqual([...types])
  const plain = read.flatMap(({ metrics, name, type }) =>
    type === "HISTOGRAM" ? [] : metrics.map((m) => [name, m] as const)
  )
  expect(plain.map(([name, { labels = {}, value = "" }]) => ({ name, labels, value: number(value) }))).toEqual(
    samples.filter(({ name }) => types.has(name))
  )

  const matching = (name: string, labels: Labels = {}) =>
    samples.filter((one) => one.name === name && Object.entries(labels).every(([k, v]) => one.labels[k] === v))
  return {
    samples,
    types,
    value: (name, labels) => {
      const found = matching(name, labels)
      expect(found.length, `${name} ${JSON.stringify(labels)}`).toBeLessThanOrEqual(1)
      return found[0]?.value
    },
    labelled: (name, label) => matching(name).map(({ labels }) => labels[label])
  }
}

/** The value of a counter without labels. */
export const counted = (counter: Counter<never>) => Effect.promise(async () => (await counter.get()).values[0]?.value)
