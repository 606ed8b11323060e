// Renders the pages of docs/, and those beside README, for the daemon: it serves them below /guide. Their names have no ending, and links
// between them neither; pictures are left out.
import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { Marked } from "marked"
import { guideFiles } from "./guideFiles.mjs"

const nameOf = (file) => basename(file, ".md").toLowerCase()

/** As GitHub makes them. */
const slug = (text) =>
  text
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-")

const escape = (text) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)

let codes = 0

const markdown = new Marked({
  renderer: {
    heading({ depth, text, tokens }) {
      return `<h${depth} id="${slug(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    link({ href, tokens }) {
      const to = /^https?:/.test(href)
        ? href
        : href.replace(/^(?:\.\.\/|docs\/)?([\w-]+)\.md/, (_, name) => name.toLowerCase())
      return `<a href="${escape(to)}">${this.parser.parseInline(tokens)}</a>`
    },
    // It scrolls, since some are drawings, and so it can be reached by keyboard. No two regions of a page have one name.
    code: ({ text }) =>
      `<pre tabindex="0" role="region" aria-label="Code ${++codes}"><code>${escape(text)}</code></pre>\n`,
    image: () => "",
    // Pictures of README and docs, and marks of what is generated.
    html: () => ""
  }
})

/** The headings below the title. */
const headings = (text) =>
  markdown
    .lexer(text)
    .filter(({ depth, type }) => type === "heading" && depth > 1)
    .map((heading) => ({ id: slug(heading.text), title: heading.text.replaceAll("`", "") }))

/** Title, headings and HTML of each page by its name. */
export const guide = (root) =>
  Object.fromEntries(
    guideFiles(root).map((file) => {
      const text = readFileSync(join(root, file), "utf8")
      const [, title = nameOf(file)] = /^# (.*)$/m.exec(text) ?? []
      codes = 0
      return [nameOf(file), { title, headings: headings(text), html: markdown.parse(text) }]
    })
  )
