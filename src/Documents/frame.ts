import { type Html, html, nothing } from "./html.ts"

export interface Heading {
  readonly id: string
  readonly title: string
}

export interface NavigationLink {
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

export interface FramedPage {
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
