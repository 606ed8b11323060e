import type { Family, Sample } from "./instruments.ts"

const escapedHelp = (help: string): string => help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")

const escapedValue = (value: string): string => escapedHelp(value).replaceAll('"', '\\"')

const number = (value: number): string => {
  if (Number.isFinite(value)) return String(value)
  if (Number.isNaN(value)) return "NaN"
  return value > 0 ? "+Inf" : "-Inf"
}

const line = (name: string, { labels, suffix, value }: Sample): string => {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapedValue(text)}"`)
  return `${name}${suffix ?? ""}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${number(value)}\n`
}

/**
 * Metric families in Prometheus' text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats). A family
 * without samples is left out. Names of families and labels are not checked.
 */
export const exposition = (families: ReadonlyArray<Family>): string =>
  families
    .filter(({ samples }) => samples.length > 0)
    .map(
      ({ help, name, samples, type }) =>
        `# HELP ${name} ${escapedHelp(help)}\n# TYPE ${name} ${type}\n${samples.map((sample) => line(name, sample)).join("")}`
    )
    .join("")
