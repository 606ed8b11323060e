/** One thing that the document says. */
export interface Statement {
  /**
   * The number of its section, or of its item in the section's list, and what it is there: the first cell of a row, or the
   * first words of a sentence. It stays the same whatever is added around it.
   */
  readonly label: string
  readonly text: string
}

const openingWords = 4

const plain = (text: string): string => text.replaceAll("`", "").trim()

const cellsOf = (line: string): ReadonlyArray<string> => line.split("|").slice(1, -1).map(plain)

/** A sentence ends with a point before a space and a capital letter. */
const sentencesOf = (text: string): ReadonlyArray<string> => text.split(/(?<=\.) (?=[A-Z])/)

const opening = (sentence: string): string =>
  plain(sentence)
    .split(" ")
    .slice(0, openingWords)
    .join(" ")
    .replace(/[,.:;]$/, "")

const inSentence = (place: string, text: string): Statement => ({ label: `${place} "${opening(text)}"`, text })

/** The first sentence of an item is known by its number. */
const inItem = (place: string, text: string): ReadonlyArray<Statement> =>
  sentencesOf(text).map((sentence, i) => (i === 0 ? { label: place, text: sentence } : inSentence(place, sentence)))

const isRule = (line: string): boolean => /^\|(?:-+\|)+$/.test(line)

/** A row that is only numbered is named after its column too. */
const inRow = (place: string, [column = ""]: ReadonlyArray<string>, line: string): Statement => {
  const [first = ""] = cellsOf(line)
  return { label: `${place} ${/^\d+$/.test(first) ? `${column.toLowerCase()} ${first}` : first}`, text: line }
}

/**
 * Everything that the document says, in its order: each row of a table, each item of a numbered list, each sentence of
 * a paragraph. A table belongs to the item above it. What stands before the first section is in section 0.
 */
export const statementsOf = (markdown: string): ReadonlyArray<Statement> => {
  const lines = markdown.split("\n").filter((line) => line !== "")
  const statements: Array<Statement> = []
  let section = "0"
  let item = ""
  let header: ReadonlyArray<string> = []
  for (const [i, line] of lines.entries()) {
    const heading = /^#+ (?:(\d+(?:\.\d+)?)\.? )?/.exec(line)
    const numbered = /^(\d+)\. (.*)/.exec(line)
    const place = item === "" ? section : `${section}.${item}`
    if (heading !== null) {
      section = heading[1] ?? section
      item = ""
    } else if (numbered !== null) {
      item = numbered[1] ?? ""
      statements.push(...inItem(`${section}.${item}`, numbered[2] ?? ""))
    } else if (!line.startsWith("|")) {
      statements.push(...sentencesOf(line.replace(/^- /, "")).map((sentence) => inSentence(place, sentence)))
    } else if (isRule(lines[i + 1] ?? "")) {
      header = cellsOf(line)
    } else if (!isRule(line)) {
      statements.push(inRow(place, header, line))
    }
  }
  return statements
}
