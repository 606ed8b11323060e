/** An event of the stream. */
export interface Message {
  /** The position to resume after. */
  readonly id: string
  readonly data: string
}

/**
 * A server-sent event of the stream. An id without data is the position where the stream begins; without either it is a
 * keep-alive.
 */
export interface EventBlock {
  readonly id: string | undefined
  readonly data: string | undefined
}

/** Parses server-sent events from text cut anywhere, in the form that tilld writes: lines end with \n. */
export const makeParser = () => {
  let rest = ""
  return (piece: string): ReadonlyArray<EventBlock> => {
    const [last = "", ...whole] = `${rest}${piece}`.split("\n\n").reverse()
    rest = last
    return whole.reverse().map(parse)
  }
}

const parse = (block: string): EventBlock => {
  const lines = block.split("\n")
  // No regular expression: its dot stops at U+2028, which JSON strings may hold.
  const valueOf = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length)
  return { id: valueOf("id: "), data: valueOf("data: ") }
}
