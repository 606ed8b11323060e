/** Rows of a page of the portal. */
export const pageSize = 50

/** The address of a page with parameters. Empty ones are left out. */
export const withQuery = (path: string, parameters: Readonly<Record<string, string | undefined>>): string => {
  const kept = Object.entries(parameters).filter((entry): entry is [string, string] => !!entry[1])
  return kept.length === 0 ? path : `${path}?${new URLSearchParams(kept)}`
}

/** The text of a field or a parameter without the space around it; empty where it is missing. */
export const textOf = (given: URLSearchParams, name: string): string => (given.get(name) ?? "").trim()

/** The text that a parameter names; undefined for a name that there is none of. */
export const namedIn = <A>(texts: Readonly<Record<string, A>>, name: string | null): A | undefined =>
  name !== null && Object.hasOwn(texts, name) ? texts[name] : undefined

/** The first value of each parameter, without surrounding blanks; empty ones are left out, and the token of a form. */
export const givenOf = (parameters: URLSearchParams): Record<string, string> => {
  const given: Record<string, string> = {}
  for (const [name, value] of parameters) {
    const text = value.trim()
    if (text !== "" && name !== "csrf" && given[name] === undefined) given[name] = text
  }
  return given
}
