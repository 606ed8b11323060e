// Renders what the daemon serves below /docs and /guide. The guide is the pages of docs/, and those beside README: their
// names have no ending, and links between them neither; pictures are left out. Links are relative, so that they work behind
// a proxy that serves tilld below a path.
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

const frame = (title, head, body) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)} · tilld</title>
<link rel="icon" href="data:,">
${head}
</head>
${body}
</html>
`

/** A list of links. The one to `open` is marked. */
const links = (all, open) => {
  const item = ([href, title]) =>
    `<li><a href="${href}"${href === open ? ' aria-current="page"' : ""}>${escape(title)}</a></li>`
  return `<ul>${all.map(item).join("")}</ul>`
}

/** The pages of the guide by their paths, its start first. `style`: the path of the stylesheet, from the root. */
export const guide = (root, style) => {
  const pages = guideFiles(root).map((file) => {
    const text = readFileSync(join(root, file), "utf8")
    const [, title = nameOf(file)] = /^# (.*)$/m.exec(text) ?? []
    return { name: nameOf(file), title, text }
  })
  const titles = pages.map(({ name, title }) => [name, title]).sort(([, a], [, b]) => a.localeCompare(b, "en"))
  const api = links([
    ["../docs", "Reference"],
    ["../openapi.json", "OpenAPI 3.1"]
  ])
  // On a phone the contents are shown while the <details> before them is open, on a wide screen always.
  const page = ({ name, text, title }) => {
    codes = 0
    return frame(
      title,
      `<link rel="stylesheet" href="../${style}">`,
      `<body class="guide">
<a class="skip" href="#main">Skip to the page</a>
<details class="menu"><summary>Contents</summary></details>
<nav aria-label="Contents"><h2>Guide</h2>${links(titles, name)}<h2>API</h2>${api}</nav>
<main id="main">
${markdown.parse(text)}
</main>
</body>`
    )
  }
  const isStart = ({ name }) => name === "index"
  const ordered = [...pages.filter(isStart), ...pages.filter((each) => !isStart(each))]
  return Object.fromEntries(ordered.map((each) => [`/guide/${each.name}`, page(each)]))
}

/** Nothing that talks to Scalar's makers, and nowhere to type a key: keys are for servers, not for pages. */
const scalar = {
  url: "openapi.json",
  telemetry: false,
  withDefaultFonts: false,
  showToolbar: "never",
  hideClientButton: true,
  hideTestRequestButton: true,
  customCss: ".scalar-reference-intro-auth { display: none !important }",
  documentDownloadType: "direct",
  defaultOpenAllTags: true,
  orderSchemaPropertiesBy: "preserve"
}

/**
 * The reference by its path: Scalar, and without JavaScript a list of the operations. Their stylesheet would disturb that of
 * Scalar. `script`: a hash of Scalar's.
 */
export const reference = (paths, style, script) => {
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([method, { summary }]) => `<li><code>${method.toUpperCase()} ${path}</code> ${escape(summary)}</li>`
    )
  )
  const page = frame(
    "API reference",
    `<noscript><link rel="stylesheet" href="${style}"></noscript>
<script defer src="docs/scalar.js?${script}"></script>`,
    `<body>
<script id="api-reference" type="application/json" data-configuration="${escape(JSON.stringify(scalar))}"></script>
<noscript>
<main>
<h1>API reference</h1>
<p>With JavaScript this page shows every field, error and example. They are also in the <a href="openapi.json">OpenAPI
document</a>. New here? Begin with <a href="guide/integrate">the guide</a>.</p>
<ul>${operations.join("")}</ul>
</main>
</noscript>
</body>`
  )
  return { "/docs": page }
}
