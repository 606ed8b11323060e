/** The pages of the reference: first steps, one for each group of operations, errors, and what all requests share. */
import { errorParts, type SharedErrors, sharedErrors } from "./errorsHtml.ts"
import { fields, named, typeName } from "./fields.ts"
import { firstSteps } from "./firstSteps.ts"
import { type Html, html, nothing } from "./html.ts"
import { type JsonSchema, type OpenApiDocument, type OperationObject, type PathItem, resolve } from "./openApi.ts"
import { eventHtml, operationHtml } from "./operationHtml.ts"
import { inline, prose, sections } from "./prose.ts"

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

/** Another schema, whose fields are all among those of this one. */
const baseOf = ({ components }: OpenApiDocument, { properties = {} }: JsonSchema) =>
  Object.entries(components.schemas).find(([, { properties: others = {} }]) => {
    const names = Object.keys(others)
    const isSame = (name: string) => JSON.stringify(properties[name]) === JSON.stringify(others[name])
    return names.length > 3 && names.length < Object.keys(properties).length && names.every(isSame)
  })

const schemaHtml = (document: OpenApiDocument, schema: JsonSchema): Html => {
  const [base, { properties: inBase = {} } = {}] = baseOf(document, schema) ?? []
  const own = Object.entries(schema.properties ?? {}).filter(([name]) => inBase[name] === undefined)
  return html`${schema.description === undefined ? nothing : prose(schema.description)}${
    base === undefined ? nothing : html`<p>The fields of <a href="#${base}">${base}</a>, and:</p>`
  }${
    own.length === 0
      ? html`<p>An object without fields.</p>`
      : fields(document.components, { ...schema, properties: Object.fromEntries(own) })
  }`
}

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
const groupParts = (
  document: OpenApiDocument,
  shared: ReadonlyArray<SharedErrors>,
  tag: string
): ReadonlyArray<Part> => {
  const groups = groupsOfSchemas(document)
  const schemas = Object.entries(document.components.schemas).filter(
    ([name]) => groups.get(name) === tag && !name.startsWith("Error.")
  )
  return [
    ...withTag(document.paths, tag).map(([path, method, operation]): Part => {
      const { description, operationId: id, summary: title } = operation
      const text = operationHtml(document, shared, path, method, operation)
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
  const [, steps] = sections(firstSteps({ publicUrl: url }))
  const shared = sharedErrors(document)
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
      parts: errorParts(shared)
    },
    ...tags.map(({ description, name }) => ({
      href: `docs/${name}`,
      title: titles[name] ?? name.charAt(0).toUpperCase() + name.slice(1),
      description,
      lead: prose(description),
      parts: [...(name === "events" ? signatures : []), ...groupParts(document, shared, name)]
    }))
  ]
  const links = inner.map(
    ({ description, href, title }) => html`<dt><a href="${href}">${title}</a></dt><dd>${description}</dd>`
  )
  return [
    {
      href: "docs",
      title: "First steps",
      description: info.summary,
      lead: html`${prose(introduction)}<p>Base address <code>${url}</code> · version ${info.version} · licence ${info.license.name}</p>`,
      parts: [
        ...partsOf("First steps", steps),
        { id: "pages", title: "All pages", label: "First steps", html: html`<dl class="pages">${links}</dl>` }
      ]
    },
    ...inner
  ]
}
