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
    code: ({ text }) => `<pre tabindex="0"><code>${escape(text)}</code></pre>\n`,
    image: () => "",
    // Pictures of README and docs, and marks of what is generated.
    html: () => ""
  }
})

/** Title and HTML of each page by its name. */
export const guide = (root) =>
  Object.fromEntries(
    guideFiles(root).map((file) => {
      const text = readFileSync(join(root, file), "utf8")
      const [, title = nameOf(file)] = /^# (.*)$/m.exec(text) ?? []
      return [nameOf(file), { title, html: markdown.parse(text) }]
    })
  )
