/** A server-sent event of the stream; one without data says where it begins. Both are empty where the message did not say. */
export interface Message {
  /** Where to go on behind it. */
  readonly id: string
  readonly data: string
}

/** Reads server-sent events out of text that comes in pieces cut anywhere, as far as tilld writes them: lines end with \n. */
export const makeParser = () => {
  let rest = ""
  return (piece: string): ReadonlyArray<Message> => {
    const [last = "", ...whole] = `${rest}${piece}`.split("\n\n").reverse()
    rest = last
    return whole.reverse().map(parse)
  }
}

const parse = (block: string): Message => {
  const message = { id: "", data: "" }
  for (const line of block.split("\n")) {
    const [, name, value = ""] = /^(id|data): (.*)$/.exec(line) ?? []
    if (name === "id" || name === "data") message[name] = value
  }
  return message
}
