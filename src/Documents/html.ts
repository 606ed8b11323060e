/** Text that is HTML already, and not to be escaped. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Piece = Html | string | number | ReadonlyArray<Piece>

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }

const write = (piece: Piece): string => {
  if (piece instanceof Html) return piece.text
  if (typeof piece === "object") return piece.map(write).join("")
  return String(piece).replace(/[&<>"]/g, (char) => entities[char] ?? char)
}

/** HTML with what is put into it escaped, unless that is HTML itself. */
export const html = (strings: TemplateStringsArray, ...pieces: ReadonlyArray<Piece>): Html =>
  new Html(strings.map((text, i) => text + write(pieces[i] ?? "")).join(""))

export const nothing = html``

/** The text without the elements. */
export const plainText = ({ text }: Html): string =>
  text
    .split("<")
    .map((part) => part.slice(part.indexOf(">") + 1))
    .join(" ")
