// A spreadsheet takes a cell that begins like this for a formula, and runs it.
// https://owasp.org/www-community/attacks/CSV_Injection
const formula = /^[=+\-@\t\r\n＝＋－＠]/

const cellOf = (value: string): string => {
  const text = formula.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A line of a file for spreadsheets (RFC 4180). No cell is a formula. */
export const csvLine = (cells: ReadonlyArray<string>): string => `${cells.map(cellOf).join(",")}\r\n`
