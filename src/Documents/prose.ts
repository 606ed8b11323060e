import { type Html, html } from "./html.ts"

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
