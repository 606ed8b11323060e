/** The search of the reference: each word is looked for as it is, so that a search takes linear time. */
import { longestQuery } from "./frame.ts"
import { type Html, html, nothing } from "./html.ts"
import { inline } from "./prose.ts"

/** What a search can find. */
export interface Findable {
  /** From the root of the origin. */
  readonly href: string
  readonly title: string
  /** What it is: `GET /v1/payments`, `Error 409`. */
  readonly label: string
  readonly description?: string
  /** More that it is found by. */
  readonly words?: string
}

/** More words than anyone types: each costs a pass over all texts. */
const mostWords = 8

const mostHits = 20

const example = html`For example <code>expiresIn</code>, <code>POST /v1/payments</code> or <code>QUOTE_EXPIRED</code>.`

const hit = (up: string, { description, href, label, title }: Findable): Html =>
  html`<li><a href="${up}${href}">${title}</a> <span class="type">${label}</span>${
    description === undefined ? nothing : html`<p>${inline(description)}</p>`
  }</li>`

/** Finds what has every word of a query, and first what has them in its title or label. */
export const makeSearch = (all: ReadonlyArray<Findable>) => {
  const indexed = all.map((item) => {
    const name = `${item.title} ${item.label}`.toLowerCase()
    return { item, name, text: `${name} ${item.description ?? ""} ${item.words ?? ""}`.toLowerCase() }
  })
  return (query: string, up: string): Html => {
    if (query.length > longestQuery)
      return html`<p>A search has at most ${longestQuery} characters: use fewer words.</p>`
    const words = query
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "")
      .slice(0, mostWords)
    if (words.length === 0) return html`<p>Type words of an operation, a path, a field or an error code. ${example}</p>`
    const found = indexed.filter(({ text }) => words.every((word) => text.includes(word)))
    if (found.length === 0) {
      return html`<p role="status">Nothing has all of these words. Use fewer of them, or a part of one. ${example}</p>`
    }
    const [named, others] = [true, false].map((isNamed) =>
      found.filter(({ name }) => words.every((word) => name.includes(word)) === isNamed)
    )
    const shown = [...(named ?? []), ...(others ?? [])].slice(0, mostHits)
    const count =
      shown.length < found.length ? `The first ${shown.length} of ${found.length} results` : `${found.length} results`
    return html`<p role="status">${found.length === 1 ? "1 result" : count}</p><ul class="hits">${shown.map(({ item }) => hit(up, item))}</ul>`
  }
}
