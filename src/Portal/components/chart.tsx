/** Charts by day as SVG made on the server, each with its numbers as a table behind it. No scripts, no style attributes. */
import { scaleBand, scaleLinear } from "d3-scale"
import { type SeriesPoint, stack } from "d3-shape"
import type { ComponentChildren } from "preact"

// About the size on the screen, so that the texts are readable on a phone as well.
const width = 400
const height = 180
const margin = { top: 8, right: 4, bottom: 22, left: 44 }

interface ChartProps {
  readonly title: string
  /** One sentence in place of the chart, for screen readers. */
  readonly summary: string
  /** What the horizontal axis says of the first, the middle and the last day: a text each day. */
  readonly days: ReadonlyArray<string>
  /** The same numbers as a table. */
  readonly table: ComponentChildren
}

const ticksOf = (highest: number) =>
  scaleLinear([0, Math.max(highest, 1)], [height - margin.bottom, margin.top]).nice(4)

/** A place for each day, and the middle of it. */
const bandsOf = (days: number) => {
  const band = scaleBand([...Array(days).keys()], [margin.left, width - margin.right]).padding(0.2)
  return { band, x: (index: number) => (band(index) ?? 0) + band.bandwidth() / 2 }
}

/** Frame, axes and table of a chart; `draw` draws into it. */
const Chart = ({
  children,
  days,
  format,
  legend,
  summary,
  table,
  title,
  x,
  y
}: ChartProps & {
  readonly x: (index: number) => number
  readonly y: ReturnType<typeof ticksOf>
  /** Empty for a value that has no line. */
  readonly format: (value: number) => string
  readonly legend?: ComponentChildren
  readonly children: ComponentChildren
}) => (
  <figure class="chart card">
    <figcaption>{title}</figcaption>
    <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={summary}>
      {y
        .ticks(4)
        .filter((value) => format(value) !== "")
        .map((value) => (
          <g key={value}>
            <line class="axis" x1={margin.left} x2={width - margin.right} y1={y(value)} y2={y(value)} />
            <text x={margin.left - 6} y={y(value) + 4} text-anchor="end">
              {format(value)}
            </text>
          </g>
        ))}
      {children}
      {[0, Math.floor((days.length - 1) / 2), days.length - 1].map((index, place) => (
        <text
          key={index}
          x={x(index)}
          y={height - 6}
          text-anchor={place === 0 ? "start" : place === 1 ? "middle" : "end"}
        >
          {days[index]}
        </text>
      ))}
    </svg>
    {legend}
    <details>
      <summary>As a table</summary>
      {table}
    </details>
  </figure>
)

export interface StackedBarsProps<Key extends string> extends ChartProps {
  /** What is stacked, from the bottom: each key is the class of its bars too. */
  readonly keys: ReadonlyArray<Key>
  readonly values: ReadonlyArray<Readonly<Record<Key, number>>>
  /** What the legend calls them. */
  readonly names?: Readonly<Partial<Record<Key, string>>>
}

/** Counts by day and kind. */
export const StackedBars = <Key extends string>({ keys, names, values, ...rest }: StackedBarsProps<Key>) => {
  const { band, x } = bandsOf(values.length)
  const series = stack<Readonly<Record<Key, number>>, Key>().keys(keys)([...values])
  const y = ticksOf(Math.max(0, ...series.flat().map(([, top]) => top)))
  const bar = ([from, to]: SeriesPoint<unknown>, index: number, key: string) =>
    to === from ? null : (
      <rect key={index} class={key} x={band(index)} width={band.bandwidth()} y={y(to)} height={y(from) - y(to)} />
    )
  const legend = (
    <ul class="legend">
      {keys.map((key) => (
        <li key={key}>
          <svg viewBox="0 0 10 10" aria-hidden="true">
            <rect class={key} width="10" height="10" />
          </svg>{" "}
          {names?.[key] ?? key}
        </li>
      ))}
    </ul>
  )
  return (
    <Chart {...rest} x={x} y={y} legend={legend} format={(value) => (Number.isInteger(value) ? String(value) : "")}>
      {series.map((points) => (
        <g key={points.key}>{points.map((point, index) => bar(point, index, points.key))}</g>
      ))}
    </Chart>
  )
}

export interface BarsProps extends ChartProps {
  readonly values: ReadonlyArray<number>
  readonly format: (value: number) => string
}

/** One number a day. */
export const Bars = ({ values, ...rest }: BarsProps) => {
  const { band, x } = bandsOf(values.length)
  const y = ticksOf(Math.max(0, ...values))
  return (
    <Chart {...rest} x={x} y={y}>
      {values.map((value, index) =>
        value === 0 ? null : (
          <rect
            key={index}
            class="income"
            x={band(index)}
            width={band.bandwidth()}
            y={y(value)}
            height={y(0) - y(value)}
          />
        )
      )}
    </Chart>
  )
}
