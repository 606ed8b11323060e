import { styleText } from "node:util"

/** What a figure must keep to. */
export type Bound = { readonly atMost: number } | { readonly atLeast: number }

/** One line of the benchmark. */
export interface Figure {
  readonly what: string
  /** What was measured, in words. */
  readonly measured: string
  /** What it stands beside, measured in the same run; empty when there is nothing. */
  readonly beside?: string
  /** The number that the bounds are about. */
  readonly judged: number
  readonly floor?: Bound
  readonly goal?: Bound
  /** How `judged` and its bounds are written. */
  readonly written: (value: number) => string
}

export const percent = (ratio: number): string => `${(ratio * 100).toFixed(0)} %`
export const millis = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`
export const seconds = (value: number): string => `${value.toFixed(2)} s`
export const mebibytes = (value: number): string => `${value.toFixed(0)} MiB`
export const times = (ratio: number): string => `${ratio.toFixed(2)} ×`
export const perSecond = (rate: number): string => `${Math.round(rate).toLocaleString("en")}/s`
export const count = (value: number): string => value.toLocaleString("en")

const keeps = (bound: Bound, value: number): boolean =>
  "atMost" in bound ? value <= bound.atMost : value >= bound.atLeast

export const holds = ({ floor, judged }: Figure): boolean => floor === undefined || keeps(floor, judged)

const boundText = (bound: Bound, written: Figure["written"]): string =>
  "atMost" in bound ? `≤ ${written(bound.atMost)}` : `≥ ${written(bound.atLeast)}`

const verdict = ({ floor, goal, judged, written }: Figure): string => {
  const value = written(judged)
  if (floor === undefined) return value
  const parts = [`floor ${boundText(floor, written)}`]
  if (goal !== undefined) parts.push(`goal ${boundText(goal, written)}${keeps(goal, judged) ? " reached" : ""}`)
  const word = keeps(floor, judged) ? styleText("green", "holds ") : styleText("red", "BROKEN")
  return `${value.padStart(9)}  ${word}  (${parts.join(", ")})`
}

export const print = (figure: Figure): void => {
  const beside = figure.beside === undefined ? "" : `, beside ${figure.beside}`
  console.log(`  ${figure.what.padEnd(34)}${verdict(figure)}`)
  console.log(`  ${" ".repeat(34)}${styleText("gray", `${figure.measured}${beside}`)}`)
}

/** The value below which a share `q` of the others are. */
export const quantile = (values: ReadonlyArray<number>, q: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)
