import type { Family, Sample } from "../Telemetry/instruments.ts"

/** A value with its labels; undefined where nothing is known. */
export type Measured = readonly [labels: Sample["labels"], value: number | boolean | undefined]

const familyOf =
  (type: "gauge" | "counter") =>
  (name: string, help: string, measured: ReadonlyArray<Measured>): Family => ({
    name,
    help,
    type,
    samples: measured.flatMap(([labels, value]) => (value === undefined ? [] : [{ labels, value: Number(value) }]))
  })

/** What was looked up when somebody asked: a boolean is 1 or 0, and what is not known is left out. */
export const gauge = familyOf("gauge")

/** The same of something that only ever grows. */
export const counter = familyOf("counter")

/** The value of a family that has but one. */
export const single = (value: Measured[1]): ReadonlyArray<Measured> => [[{}, value]]
