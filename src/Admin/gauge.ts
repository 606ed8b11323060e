import type { Family, Sample } from "../Telemetry/instruments.ts"

/** A value with its labels; undefined when it is not known. */
export type Measured = readonly [labels: Sample["labels"], value: number | boolean | undefined]

const familyOf =
  (type: "gauge" | "counter") =>
  (name: string, help: string, measured: ReadonlyArray<Measured>): Family => ({
    name,
    help,
    type,
    samples: measured.flatMap(([labels, value]) => (value === undefined ? [] : [{ labels, value: Number(value) }]))
  })

/** A gauge of values that were read on demand. A boolean becomes 1 or 0; unknown values are left out. */
export const gauge = familyOf("gauge")

/** The same for a value that only increases. */
export const counter = familyOf("counter")

/** The only value of a family without labels. */
export const single = (value: Measured[1]): ReadonlyArray<Measured> => [[{}, value]]
