import { errorTable, type SharedErrors, sharedErrors } from "./errorsHtml.ts"
import { fields, named } from "./fields.ts"
import { type Html, html } from "./html.ts"
import type { OpenApiDocument, OperationObject, PathItem } from "./openApi.ts"
import { resolve } from "./openApi.ts"
import { eventHtml, operationHtml } from "./operationHtml.ts"
import { prose, type Section, sections } from "./prose.ts"

type Listed = readonly [path: string, method: string, operation: OperationObject]

const listed = (items: Readonly<Record<string, PathItem>>): ReadonlyArray<Listed> =>
  Object.entries(items).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => [path, method, operation] as const)
  )

const withTag = (items: Readonly<Record<string, PathItem>>, tag: string) =>
  listed(items).filter(([, , { tags }]) => tags.includes(tag))

const links = (items: ReadonlyArray<readonly [id: string, title: string]>): Html =>
  html`<ul>${items.map(([id, title]) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>`

const titled = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1)

const operationLinks = (items: ReadonlyArray<Listed>) =>
  links(items.map(([, , { operationId, summary }]) => [operationId, summary]))

const navigation = (document: OpenApiDocument, guide: ReadonlyArray<Section>): Html =>
  html`<nav aria-label="Contents">
<h2>Guide</h2>${links(guide.map(({ id, title }) => [id, title]))}
${document.tags.map(({ name }) => {
  const items = [...withTag(document.paths, name), ...withTag(document.webhooks, name)]
  return html`<h2><a href="#tag-${name}">${titled(name)}</a></h2>${operationLinks(items)}`
})}
<h2>Reference</h2>${links([
    ["error-codes", "Error codes"],
    ["headers", "Headers"],
    ["schemas", "Schemas"]
  ])}</nav>`

const headerList = ({ components }: OpenApiDocument): Html =>
  html`<section id="headers"><h2><a href="#headers">Response headers</a></h2>
<p>Every answer has <code>X-Request-Id</code>, and every answer to a key the three of <a href="#rate-limits">its limits</a>; the others are named where they come.</p>
${Object.entries(components.headers).map(
  ([name, header]) =>
    html`<div id="header-${name.toLowerCase()}">${named(components, [{ ...header, name, required: false }])}</div>`
)}</section>`

const schemaList = ({ components }: OpenApiDocument): Html =>
  html`<section id="schemas"><h2><a href="#schemas">Schemas</a></h2>
${Object.entries(components.schemas)
  .filter(([name]) => !name.startsWith("Error."))
  .map(
    ([name, schema]) => html`<section id="${name}" aria-labelledby="${name}-title">
<h3 id="${name}-title"><a href="#${name}">${name}</a></h3>${schema.description === undefined ? "" : prose(schema.description)}
${fields(components, schema)}</section>`
  )}</section>`

const signatureList = ({ components, webhooks }: OpenApiDocument): Html => {
  const [[, , { parameters = [] }] = ["", "", { parameters: [] }]] = listed(webhooks)
  return html`<h3>Headers of a delivery</h3>${named(
    components,
    parameters.map((each) => resolve(components, "parameters", each))
  )}`
}

const groups = (document: OpenApiDocument, shared: ReadonlyArray<SharedErrors>): Html =>
  html`${document.tags.map(
    ({
      description,
      name
    }) => html`<section id="tag-${name}"><h2><a href="#tag-${name}">${titled(name)}</a></h2>${prose(description)}
${withTag(document.paths, name).map(([path, method, operation]) => operationHtml(document, shared, path, method, operation))}
${withTag(document.webhooks, name).map(([kind, , operation]) => eventHtml(kind, operation))}</section>`
  )}`

/** The document as a self-contained page: no script, and only the stylesheet from the same host. */
export const renderPage = (document: OpenApiDocument): string => {
  const { info, servers } = document
  const [introduction, guide] = sections(info.description)
  const shared = sharedErrors(document)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API reference</title>
<link rel="stylesheet" href="docs/style.css">
</head>
<body>
<a class="skip" href="#main">Skip to the reference</a>
${navigation(document, guide)}
<main id="main">
<header><h1>${info.title} <span class="version">${info.version}</span></h1>
<p class="lead">${info.summary}</p>
<p>${servers.map(({ url }) => html`Base address <code>${url}</code>`)} · <a href="guide/index">Guide</a> · <a href="openapi.json">OpenAPI 3.1</a> · licence ${info.license.name}</p></header>
${prose(introduction)}
${guide.map(
  ({ id, text, title }) =>
    html`<section id="${id}"><h2><a href="#${id}">${title}</a></h2>${prose(text)}${id === "webhooks" ? signatureList(document) : ""}</section>`
)}
${groups(document, shared)}
${errorTable(shared)}
${headerList(document)}
${schemaList(document)}
</main>
</body>
</html>
`.text
}
