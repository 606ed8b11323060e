/** Charts by day as SVG made on the server, each with its numbers as a table behind it. No scripts, no style attributes. */
import type { ComponentChildren } from "preact"

// About the size on the screen, so that the texts are readable on a phone as well.
const width = 400
const height = 180
const margin = { top: 8, right: 4, bottom: 22, left: 44 }

/** Round values from 0 up to the highest or above it, at most four steps. */
const ticksUpTo = (highest: number): ReadonlyArray<number> => {
  const power = 10 ** Math.floor(Math.log10(highest / 4))
  const step = power * ([1, 2, 5].find((times) => times * power * 4 >= highest) ?? 10)
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, i) => i * step)
}

interface BarsProps<Key extends string> {
  readonly title: string
  /** One sentence in place of the chart, for screen readers. */
  readonly summary: string
  /** What the horizontal axis says of the first, the middle and the last day: a text each day. */
  readonly days: ReadonlyArray<string>
  /** What is stacked, from the bottom: each key is the class of its bars too. */
  readonly keys: ReadonlyArray<Key>
  readonly values: ReadonlyArray<Readonly<Record<Key, number>>>
  /** What the legend calls them; there is none without. */
  readonly names?: Readonly<Record<Key, string>>
  /** Empty for a value that has no line. */
  readonly format: (value: number) => string
  /** The same numbers as a table. */
  readonly table: ComponentChildren
}

/** Numbers by day and kind. */
export const Bars = <Key extends string>({
  days,
  format,
  keys,
  names,
  summary,
  table,
  title,
  values
}: BarsProps<Key>) => {
  /** The top of a day's bar, with so many of the keys. */
  const topOf = (day: Readonly<Record<Key, number>>, count = keys.length) =>
    keys.slice(0, count).reduce((sum, key) => sum + day[key], 0)
  const ticks = ticksUpTo(Math.max(1, ...values.map((day) => topOf(day))))
  const highest = ticks.at(-1) ?? 1
  const y = (value: number) => height - margin.bottom - (value / highest) * (height - margin.bottom - margin.top)
  const band = (width - margin.left - margin.right) / values.length
  const x = (index: number) => margin.left + band * (index + 0.1)
  return (
    <figure class="chart card">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={summary}>
        {ticks
          .filter((value) => format(value) !== "")
          .map((value) => (
            <g key={value}>
              <line class="axis" x1={margin.left} x2={width - margin.right} y1={y(value)} y2={y(value)} />
              <text x={margin.left - 6} y={y(value) + 4} text-anchor="end">
                {format(value)}
              </text>
            </g>
          ))}
        {values.flatMap((day, index) =>
          keys.map((key, place) => {
            const [from, to] = [topOf(day, place), topOf(day, place + 1)]
            return to === from ? null : (
              <rect key={key} class={key} x={x(index)} width={band * 0.8} y={y(to)} height={y(from) - y(to)} />
            )
          })
        )}
        {[0, Math.floor((days.length - 1) / 2), days.length - 1].map((index, place) => (
          <text
            key={index}
            x={x(index) + band * 0.4}
            y={height - 6}
            text-anchor={place === 0 ? "start" : place === 1 ? "middle" : "end"}
          >
            {days[index]}
          </text>
        ))}
      </svg>
      {names === undefined ? null : (
        <ul class="legend">
          {keys.map((key) => (
            <li key={key}>
              <svg viewBox="0 0 10 10" aria-hidden="true">
                <rect class={key} width="10" height="10" />
              </svg>{" "}
              {names[key]}
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>As a table</summary>
        {table}
      </details>
    </figure>
  )
}
