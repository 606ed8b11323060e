/** An event, as it was told. */
export interface Message {
  /** Where to go on behind it. */
  readonly id: string
  readonly data: string
}

/**
 * A server-sent event of the stream; undefined is what it did not say. An id without data says where the stream begins,
 * and without either it is a sign of life.
 */
export interface EventBlock {
  readonly id: string | undefined
  readonly data: string | undefined
}

/** Reads server-sent events out of text that comes in pieces cut anywhere, as far as tilld writes them: lines end with \n. */
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
  // No pattern: its dot ends at U+2028, which JSON lets stand in a text.
  const valueOf = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length)
  return { id: valueOf("id: "), data: valueOf("data: ") }
}
