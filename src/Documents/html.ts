import { type Components, type JsonSchema, nameOf, resolve } from "./openApi.ts"

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

/** `code` and the text around it. */
export const inline = (text: string): Html =>
  html`${text.split("`").map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part))}`

/** JSON or a program, as it is. Its long lines wrap. */
export const code = (text: string): Html => html`<pre><code>${text}</code></pre>`

const paragraph = (text: string): Html => {
  const lines = text.split("\n")
  return lines.every((line) => line.startsWith("- "))
    ? html`<ul>${lines.map((line) => html`<li>${inline(line.slice(2))}</li>`)}</ul>`
    : html`<p>${inline(text)}</p>`
}

const paragraphs = (text: string): ReadonlyArray<Html> =>
  text
    .split(/\n{2,}/)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map(paragraph)

/** Paragraphs, lists, fences and `code`: the Markdown of the document's descriptions. */
export const prose = (text: string): Html =>
  html`${text.split(/^```\w*\n([\s\S]*?)\n```$/m).map((part, i) => (i % 2 === 1 ? code(part) : paragraphs(part)))}`

export interface Section {
  readonly id: string
  readonly title: string
  readonly text: string
}

/** The text before the first heading, and the sections by second-level headings. */
export const sections = (text: string): readonly [introduction: string, sections: ReadonlyArray<Section>] => {
  const [introduction = "", ...rest] = text.split(/^## /m)
  return [
    introduction,
    rest.map((part) => {
      const [title = ""] = part.split("\n", 1)
      return { id: title.toLowerCase().replaceAll(" ", "-"), title, text: part.slice(title.length).trim() }
    })
  ]
}

const deref = (components: Components, schema: JsonSchema): JsonSchema => resolve(components, "schemas", schema)

const range = ({ maximum, minimum }: JsonSchema): string => {
  if (minimum !== undefined && maximum !== undefined) return ` ${minimum}–${maximum}`
  return minimum === undefined ? "" : ` ≥ ${minimum}`
}

/** `array of string`, `integer 60–86400`, `string or null` */
export const typeName = (components: Components, schema: JsonSchema): string => {
  const { anyOf, items, type } = deref(components, schema)
  if (items !== undefined) return `array of ${typeName(components, items)}`
  if (anyOf !== undefined) return anyOf.map((each) => typeName(components, each)).join(" or ")
  return `${String(type ?? "any")}${range(deref(components, schema))}`
}

const values = (components: Components, schema: JsonSchema): ReadonlyArray<unknown> => {
  const { enum: own, items } = deref(components, schema)
  return own ?? (items === undefined ? [] : values(components, items))
}

/** What a field holds that has fields itself. */
const inside = (components: Components, schema: JsonSchema): JsonSchema | undefined => {
  const { items, properties } = deref(components, schema)
  if (properties !== undefined) return schema
  return items === undefined ? undefined : inside(components, items)
}

const choices = (given: ReadonlyArray<unknown>): Html =>
  given.length < 2
    ? nothing
    : html`<p class="choices">${given.map((value) => html`<code>${String(value)}</code> `)}</p>`

const field = (components: Components, name: string, schema: JsonSchema, required: boolean): Html => {
  const { description } = schema.$ref === undefined ? schema : deref(components, schema)
  const nested = inside(components, schema)
  return html`<dt><code>${name}</code> <span class="type">${typeName(components, schema)}</span>${
    required ? html` <span class="required">required</span>` : nothing
  }</dt><dd>${description === undefined ? nothing : html`<p>${inline(description)}</p>`}${choices(
    values(components, schema)
  )}${nested === undefined ? nothing : nestedFields(components, nested)}</dd>`
}

/** The name of a schema; one that was written out with another description is known by its fields. */
const schemaName = ({ schemas }: Components, { $ref, properties }: JsonSchema): string | undefined => {
  if ($ref !== undefined) return nameOf($ref)
  const text = JSON.stringify(properties)
  return Object.entries(schemas).find(([, other]) => JSON.stringify(other.properties) === text)?.[0]
}

/** Links to a description elsewhere instead of repeating it. */
const nestedFields = (components: Components, schema: JsonSchema): Html => {
  const name = schemaName(components, schema)
  return name === undefined ? fields(components, schema) : html`<p>See <a href="#${name}">${name}</a>.</p>`
}

/** The fields of an object. */
export const fields = (components: Components, schema: JsonSchema): Html => {
  const { properties = {}, required = [] } = deref(components, schema)
  return html`<dl class="fields">${Object.entries(properties).map(([name, each]) =>
    field(components, name, each, required.includes(name))
  )}</dl>`
}

/** A parameter or a header reads like a field. */
export const named = (
  components: Components,
  items: ReadonlyArray<{
    readonly name: string
    readonly required: boolean
    readonly description: string
    readonly schema: JsonSchema
  }>
): Html =>
  html`<dl class="fields">${items.map(({ description, name, required, schema }) =>
    field(components, name, { ...schema, description }, required)
  )}</dl>`

export interface Heading {
  readonly id: string
  readonly title: string
}

interface NavigationLink {
  /** From the root of the origin, without a slash before it: `docs/payments`. */
  readonly href: string
  readonly title: string
  /** Shown beneath the link while its page is open. */
  readonly headings?: ReadonlyArray<Heading>
}

export interface NavigationGroup {
  readonly title: string
  readonly links: ReadonlyArray<NavigationLink>
}

interface FramedPage {
  readonly title: string
  /** The link that the navigation marks. */
  readonly href?: string
  /** From the page to the root. Links are relative, so that they work behind a proxy that serves tilld below a path. */
  readonly up: string
  /** What was searched for. */
  readonly query?: string
  readonly content: Html
}

/** Renders a page as a document. */
export type Frame = (page: FramedPage) => string

/** Characters of a search. */
export const longestQuery = 100

const navigation = (groups: ReadonlyArray<NavigationGroup>, { href: open, up }: FramedPage): Html =>
  html`<nav aria-label="Contents">${groups.map(
    ({ links, title }) =>
      html`<h2>${title}</h2><ul>${links.map(({ headings = [], href, title }) =>
        href === open
          ? html`<li><a href="${up}${href}" aria-current="page">${title}</a>${headings.length === 0 ? nothing : headingList(headings)}</li>`
          : html`<li><a href="${up}${href}">${title}</a></li>`
      )}</ul>`
  )}</nav>`

const headingList = (headings: ReadonlyArray<Heading>): Html =>
  html`<ul>${headings.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>`

/**
 * The frame of the reference and the guide: a search, the navigation, and the page. It has no script: on a phone the
 * navigation is shown while the `<details>` before it is open, on a wide screen always.
 */
export const makeFrame =
  (style: string, groups: ReadonlyArray<NavigationGroup>): Frame =>
  (page) => {
    const { content, query = "", title, up } = page
    return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · tilld</title>
<link rel="stylesheet" href="${up}${style}">
</head>
<body>
<a class="skip" href="#main">Skip to the page</a>
<header class="top"><a class="brand" href="${up}docs">tilld docs</a>
<search><form method="get" action="${up}docs/search"><input type="search" name="q" value="${query}" maxlength="${longestQuery}" aria-label="Search the API reference and the guide" placeholder="Operation, field, error code"><button type="submit">Search</button></form></search></header>
<details class="menu"><summary>Contents</summary></details>
${navigation(groups, page)}
<main id="main">
${content}
</main>
</body>
</html>
`.text
  }
