/** The pages of the reference: their list, one for each group of operations, errors, and what all requests share. */

import { errorCodes, statusOf } from "../Domain/ApiError.ts"
import { exampleError, meanings } from "./errors.ts"
import { code, fields, type Html, html, inline, named, nothing, prose, sections, typeName } from "./html.ts"
import {
  type Components,
  type JsonSchema,
  type MediaType,
  nameOf,
  type OpenApiDocument,
  type OperationObject,
  type Parameter,
  type PathItem,
  type Response,
  resolve
} from "./openApi.ts"
import { commonHeaders } from "./operations.ts"

const isError = (name: string): boolean => errorCodes.some((code) => code === name)

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

/** Examples are folded where they repeat what is said elsewhere. */
const examplesOf = ({ examples = {} }: MediaType, isFolded: boolean): Html =>
  html`${Object.entries(examples).map(([name, { summary = name, value }]) =>
    isFolded
      ? html`<details class="answer"><summary>Example: ${summary}</summary>${code(shown(value))}</details>`
      : html`<figure><figcaption>${summary}</figcaption>${code(shown(value))}</figure>`
  )}`

/** Where the fields of a body are. */
const schemaLink = ({ schema }: MediaType): Html =>
  schema.$ref === undefined ? nothing : html`<p><a href="#${nameOf(schema.$ref)}">${nameOf(schema.$ref)}</a></p>`

const bodies = (content: Readonly<Record<string, MediaType>>, isFolded: boolean): Html =>
  html`${Object.values(content).map((media) => html`${schemaLink(media)}${examplesOf(media, isFolded)}`)}`

/** The headers of a response, without those that nearly all have, which are described in one place. */
const headersOf = (components: Components, { headers = {} }: Response): Html => {
  const own = Object.keys(headers).filter((name) => !commonHeaders.has(name))
  return own.length === 0
    ? nothing
    : html`<p class="headers">Headers: ${own.map((name, i) => {
        const { required } = resolve(components, "headers", headers[name] ?? { $ref: "" })
        return html`${i === 0 ? "" : ", "}<a href="#header-${name.toLowerCase()}"><code>${name}</code></a>${required ? "" : " (sometimes)"}`
      })}</p>`
}

/** The schema of a media type without error bodies. */
const withoutErrors = (media: MediaType): MediaType => ({
  ...media,
  examples: Object.fromEntries(Object.entries(media.examples ?? {}).filter(([name]) => !isError(name)))
})

/** A response, unless it is always an error. */
const answer = (components: Components, status: string, response: Response): Html => {
  const media = Object.entries(response.content ?? {}).map(([type, each]) => [type, withoutErrors(each)] as const)
  const examples = media.flatMap(([, each]) => Object.keys(each.examples ?? {}))
  if (media.length > 0 && examples.length === 0) return nothing
  const [title = ""] = response.description.split("\n")
  return html`<details class="answer"><summary><span class="status">${status}</span> ${title}</summary>${headersOf(
    components,
    response
  )}${bodies(Object.fromEntries(media), false)}</details>`
}

const parametersOf = (components: Components, { parameters = [] }: OperationObject): Html => {
  const all: ReadonlyArray<Parameter> = parameters.map((each) => resolve(components, "parameters", each))
  const places = [
    ["path", "Path"],
    ["query", "Query"],
    ["header", "Headers"]
  ] as const
  return html`${places.map(([place, title]) => {
    const there = all.filter((each) => each.in === place)
    return there.length === 0 ? nothing : html`<h3>${title}</h3>${named(components, there)}`
  })}`
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The request as a curl command. */
const command = (server: string, method: string, path: string, operation: OperationObject): string => {
  const [first] = Object.values(operation.requestBody?.content["application/json"]?.examples ?? {})
  const url = `${server}${path.replace(/\{(\w+)\}/g, "ID")}`
  return [
    `curl -sS ${method === "post" || method === "get" ? "" : `-X ${method.toUpperCase()} `}${url}`,
    ...(operation.security.length > 0 ? [`-H "X-API-Key: $KEY"`] : []),
    ...(first === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(first.value))}`])
  ].join(" \\\n  ")
}

/** The codes that an operation can answer with: each has an example by its name. */
const errorsOf = (components: Components, { responses }: OperationObject): Html => {
  const media = Object.values(responses).flatMap((each) =>
    Object.values(resolve(components, "responses", each).content ?? {})
  )
  const codes = errorCodes.filter((code) => media.some(({ examples = {} }) => code in examples))
  const links = codes.map(
    (code, i) => html`${i === 0 ? "" : ", "}${statusOf[code]} <a href="#error-${code}"><code>${code}</code></a>`
  )
  return html`<h3>Errors</h3><p class="headers">${links}</p>`
}

/** An operation that tilld serves. */
const operationHtml = (
  { components, servers }: OpenApiDocument,
  path: string,
  method: string,
  operation: OperationObject
): Html => {
  const { description, requestBody, responses } = operation
  return html`<p class="route"><span class="method">${method.toUpperCase()}</span> <code>${path}</code></p>
${prose(description)}
${parametersOf(components, operation)}
${requestBody === undefined ? nothing : html`<h3>Body</h3>${bodies(requestBody.content, true)}`}
<h3>With curl</h3>${code(command(servers[0]?.url ?? "", method, path, operation))}
<h3>Answers</h3>
${Object.entries(responses).map(([status, each]) => answer(components, status, resolve(components, "responses", each)))}
${errorsOf(components, operation)}`
}

/** An event that tilld sends. */
const eventHtml = (kind: string, { description, requestBody }: OperationObject): Html =>
  html`<p class="route"><span class="method">EVENT</span> <code>${kind}</code></p>
${prose(description)}
${Object.values(requestBody?.content ?? {}).map((media) => examplesOf(media, true))}`

/** A part of a page with a heading, which a search finds. Links to an `#id` of another page are not resolved yet. */
export interface Part {
  readonly id: string
  readonly title: string
  /** What it is: `GET /v1/payments`, `Error 409`. */
  readonly label: string
  readonly description?: string
  readonly html: Html
  /** A detail is not in the navigation. */
  readonly look?: "operation" | "detail"
}

export interface ReferencePage {
  /** From the root: `docs`, `docs/payments`. */
  readonly href: string
  readonly title: string
  readonly description: string
  readonly lead: Html
  readonly parts: ReadonlyArray<Part>
}

/** Every code once, with an example of its body. */
const errorParts: ReadonlyArray<Part> = errorCodes.map((title) => {
  const description = meanings[title]
  const example = code(JSON.stringify(exampleError(title), null, 2))
  const text = html`<p>${inline(description)}</p><details><summary aria-label="Example of ${title}">Example</summary>${example}</details>`
  return { id: `error-${title}`, title, label: `Error ${statusOf[title]}`, description, look: "detail", html: text }
})

type Listed = readonly [path: string, method: string, operation: OperationObject]

const withTag = (items: Readonly<Record<string, PathItem>>, tag: string): ReadonlyArray<Listed> =>
  Object.entries(items).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) =>
      operation.tags.includes(tag) ? [[path, method, operation] as const] : []
    )
  )

/** The group of each schema: the first whose operations name it, or else that of the first schema that does. */
const groupsOfSchemas = ({ components, paths, tags, webhooks }: OpenApiDocument): ReadonlyMap<string, string> => {
  const groups = new Map<string, string>()
  const add = (value: unknown, tag: string) => {
    for (const [, name = ""] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (!groups.has(name)) groups.set(name, tag)
    }
  }
  for (const { name } of tags) add([...withTag(paths, name), ...withTag(webhooks, name)], name)
  // A map's loop also visits what is added meanwhile.
  for (const [name, tag] of groups) add(components.schemas[name], tag)
  return groups
}

const schemaHtml = ({ components }: OpenApiDocument, schema: JsonSchema): Html =>
  html`${schema.description === undefined ? nothing : prose(schema.description)}${
    Object.keys(schema.properties ?? {}).length === 0
      ? html`<p>An object without fields.</p>`
      : fields(components, schema)
  }`

const deliveryHeaders = ({ components, webhooks }: OpenApiDocument): Html => {
  const [{ post } = {}] = Object.values(webhooks)
  const parameters = (post?.parameters ?? []).map((each) => resolve(components, "parameters", each))
  return html`<h3>Headers of a delivery</h3>${named(components, parameters)}`
}

const responseHeaders = ({ components }: OpenApiDocument): ReadonlyArray<Part> => [
  {
    id: "headers",
    title: "Response headers",
    label: "Conventions",
    html: html`<p>Every answer has <code>X-Request-Id</code>, and every answer to a key the three of <a href="#rate-limits">its limits</a>; the others are named where they come.</p>`
  },
  ...Object.entries(components.headers).map(([title, { description, schema }]): Part => {
    const text = html`<p><span class="type">${typeName(components, schema)}</span> ${inline(description)}</p>`
    return { id: `header-${title.toLowerCase()}`, title, label: "Header", description, look: "detail", html: text }
  })
]

const titles: Readonly<Record<string, string>> = {
  exceptions: "Exceptions and refunds",
  events: "Events and signatures"
}

/** The operations of a group, its events, and the schemas that belong to it. */
const groupParts = (document: OpenApiDocument, tag: string): ReadonlyArray<Part> => {
  const groups = groupsOfSchemas(document)
  const schemas = Object.entries(document.components.schemas).filter(
    ([name]) => groups.get(name) === tag && !name.startsWith("Error.")
  )
  return [
    ...withTag(document.paths, tag).map(([path, method, operation]): Part => {
      const { description, operationId: id, summary: title } = operation
      const text = operationHtml(document, path, method, operation)
      return { id, title, label: `${method.toUpperCase()} ${path}`, description, look: "operation", html: text }
    }),
    ...withTag(document.webhooks, tag).map(([id, , operation]): Part => {
      const { description, summary: title } = operation
      return { id, title, label: `Event ${id}`, description, look: "operation", html: eventHtml(id, operation) }
    }),
    ...schemas.map(([id, schema]) => ({ id, title: id, label: "Object", html: schemaHtml(document, schema) }))
  ]
}

/** The pages in the order of the navigation. */
export const referencePages = (document: OpenApiDocument): ReadonlyArray<ReferencePage> => {
  const { info, servers, tags } = document
  const [introduction, overview] = sections(info.description)
  const url = servers[0]?.url ?? ""
  const partsOf = (label: string, all: typeof overview) =>
    all.map(({ id, text, title }): Part => ({ id, title, label, html: prose(text) }))
  const about = (...ids: ReadonlyArray<string>) => overview.filter(({ id }) => ids.includes(id))
  const signatures = partsOf("Events and signatures", about("webhooks")).map((part) => ({
    ...part,
    html: html`${part.html}${deliveryHeaders(document)}`
  }))
  const inner: ReadonlyArray<ReferencePage> = [
    {
      href: "docs/conventions",
      title: "Conventions",
      description: "Keys, amounts, lists, limits and safe retries: what all requests share.",
      lead: nothing,
      parts: [
        ...partsOf(
          "Conventions",
          overview.filter(({ id }) => id !== "errors" && id !== "webhooks")
        ),
        ...responseHeaders(document)
      ]
    },
    {
      href: "docs/errors",
      title: "Errors",
      description: "The form of errors, and every code with what to do.",
      lead: html`${about("errors").map(({ text }) => prose(text))}`,
      parts: [{ id: "error-codes", title: "Error codes", label: "Errors", html: nothing }, ...errorParts]
    },
    ...tags.map(({ description, name }) => ({
      href: `docs/${name}`,
      title: titles[name] ?? name.charAt(0).toUpperCase() + name.slice(1),
      description,
      lead: prose(description),
      parts: [...(name === "events" ? signatures : []), ...groupParts(document, name)]
    }))
  ]
  const links = inner.map(
    ({ description, href, title }) => html`<dt><a href="${href}">${title}</a></dt><dd>${description}</dd>`
  )
  const list = html`<p>New here? Begin with <a href="guide/integrate">the guide</a>.</p><dl class="pages">${links}</dl>`
  return [
    {
      href: "docs",
      title: "API reference",
      description: info.summary,
      lead: html`${prose(introduction)}<p>Base address <code>${url}</code> · version ${info.version} · licence ${info.license.name}</p>`,
      parts: [{ id: "pages", title: "All pages", label: "API reference", html: list }]
    },
    ...inner
  ]
}
