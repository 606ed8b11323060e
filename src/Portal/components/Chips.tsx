import { Mark } from "../../Pages/marks.tsx"

export interface ChipsProps {
  readonly label: string
  /** A count is of what the list has with the value. */
  readonly options: ReadonlyArray<readonly [value: string, text: string, count?: string | undefined]>
  readonly chosen: string | undefined
  /** The list with a value of this filter; with none for "". */
  readonly hrefOf: (value: string) => string
}

/** One filter of a list, applied at once: each value is a link, and the chosen one leads back to the list without it. */
export const Chips = ({ chosen, hrefOf, label, options }: ChipsProps) => (
  <ul class="chips" aria-label={label}>
    {options.map(([value, text, count]) =>
      value === chosen ? (
        <li key={value}>
          <a aria-current="true" href={hrefOf("")}>
            {[text, count].join(" ").trim()}
            {value === "" ? null : (
              <>
                {" "}
                <Mark of="cross" />
                <span class="visually-hidden">: take away</span>
              </>
            )}
          </a>
        </li>
      ) : (
        <li key={value}>
          <a href={hrefOf(value)}>{[text, count].join(" ").trim()}</a>
        </li>
      )
    )}
  </ul>
)
