/** The address of a page with parameters. Empty ones are left out. */
export const withQuery = (path: string, parameters: Readonly<Record<string, string | undefined>>): string => {
  const kept = Object.entries(parameters).filter((entry): entry is [string, string] => !!entry[1])
  return kept.length === 0 ? path : `${path}?${new URLSearchParams(kept)}`
}

/** The first value of each parameter, without surrounding blanks; empty ones are left out, as a form sends them. */
export const givenOf = (parameters: URLSearchParams): Record<string, string> => {
  const given: Record<string, string> = {}
  for (const [name, value] of parameters) {
    const text = value.trim()
    if (text !== "" && given[name] === undefined) given[name] = text
  }
  return given
}
