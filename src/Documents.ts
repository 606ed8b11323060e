/** What there is to read of the API: OpenAPI for programs, and pages for people, made of the same document. */
import { type Installation, makeDocument } from "./Documents/document.ts"
import {
  type Frame,
  Html,
  html,
  inline,
  longestQuery,
  makeFrame,
  type NavigationGroup,
  nothing,
  plainText
} from "./Documents/html.ts"
import type { OpenApiDocument } from "./Documents/openApi.ts"
import { type Part, type ReferencePage, referencePages } from "./Documents/pages.ts"

/** What a search can find. */
interface Findable {
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

/** OpenAPI 3.1, as JSON. */
export const makeOpenApi = (installation: Installation): string => JSON.stringify(makeDocument(installation))

export interface DocumentPages {
  readonly frame: Frame
  /** The pages by their path. */
  readonly pages: ReadonlyMap<string, string>
  /** The page of a search. */
  readonly search: (query: string) => string
}

export interface ReferenceParts {
  /** The path of the stylesheet, from the root. */
  readonly style: string
  /** What a search finds in the guide. */
  readonly guide: ReadonlyArray<Findable>
}

const groupsOf = (pages: ReadonlyArray<ReferencePage>): ReadonlyArray<NavigationGroup> => {
  const links = pages.map(({ href, parts, title }) => ({
    href,
    title,
    headings: parts.filter(({ look }) => look !== "detail")
  }))
  return [
    { title: "Start", links: links.slice(0, 3) },
    { title: "Reference", links: links.slice(3) },
    {
      title: "More",
      links: [
        { href: "guide/index", title: "Guide" },
        { href: "openapi.json", title: "OpenAPI 3.1" }
      ]
    }
  ]
}

const partHtml = ({ html: text, id, label, look, title }: Part): Html =>
  look === "detail"
    ? html`<section id="${id}"><h3><a href="#${id}">${title}</a> <span class="type">${label}</span></h3>${text}</section>`
    : html`<section id="${id}"${look === "operation" ? html` class="operation"` : nothing}><h2><a href="#${id}">${title}</a></h2>${text}</section>`

/** Links to an `#id` lead to the page that has it. One that leads nowhere is a defect. */
const linked = (content: Html, places: ReadonlyMap<string, string>, here: string, up: string): Html =>
  new Html(
    content.text.replace(/ href="#([^"]*)"/g, (link, id: string) => {
      const place = places.get(id)
      if (place === undefined) throw new Error(`#${id} is on no page`)
      return place === here ? link : ` href="${up}${place}#${id}"`
    })
  )

/** All pages of the reference, rendered at once. */
export const makeReference = (document: OpenApiDocument, { guide, style }: ReferenceParts): DocumentPages => {
  const all = referencePages(document).map((page) => ({
    ...page,
    content: html`<h1>${page.title}</h1>${page.lead}${page.parts.map(partHtml)}`
  }))
  const places = new Map(
    all.flatMap(({ content, href }) =>
      Array.from(content.text.matchAll(/ id="([^"]*)"/g), ([, id = ""]) => [id, href] as const)
    )
  )
  const frame = makeFrame(style, groupsOf(all))
  const find = makeSearch([
    ...all.flatMap(({ href, parts }) =>
      parts.map(({ html, id, ...part }) => ({ ...part, href: `${href}#${id}`, words: plainText(html) }))
    ),
    ...guide
  ])
  const pages = all.map(({ content, href, title }) => {
    const up = href.includes("/") ? "../" : ""
    return [`/${href}`, frame({ title, href, up, content: linked(content, places, href, up) })] as const
  })
  return {
    frame,
    pages: new Map(pages),
    search: (query) => frame({ title: "Search", up: "../", query, content: html`<h1>Search</h1>${find(query, "../")}` })
  }
}
