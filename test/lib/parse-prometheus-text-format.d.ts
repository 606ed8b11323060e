/** A port of the Python client's parser; it brings no types. */
declare module "parse-prometheus-text-format" {
  interface ParsedMetric {
    readonly labels?: Readonly<Record<string, string>>
    /** Absent for a histogram. */
    readonly value?: string
    readonly count?: string
    readonly sum?: string
    readonly buckets?: Readonly<Record<string, string>>
  }
  interface ParsedFamily {
    readonly name: string
    readonly help: string
    readonly type: string
    readonly metrics: ReadonlyArray<ParsedMetric>
  }
  export default function parse(text: string): ReadonlyArray<ParsedFamily>
}
