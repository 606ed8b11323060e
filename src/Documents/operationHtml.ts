import { named } from "./fields.ts"
import { type Html, html, nothing } from "./html.ts"
import {
  type Components,
  type MediaType,
  nameOf,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  type Response,
  resolve
} from "./openApi.ts"
import { code, prose } from "./prose.ts"

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

const examplesOf = ({ examples = {} }: MediaType): Html =>
  html`${Object.entries(examples).map(
    ([name, { summary = name, value }]) =>
      html`<figure><figcaption>${summary}</figcaption>${code(shown(value), summary)}</figure>`
  )}`

/** Where the fields of a body are: further down, an error among the error codes. */
const schemaLink = ({ schema }: MediaType): Html => {
  if (schema.$ref === undefined) return nothing
  const name = nameOf(schema.$ref)
  return html`<p><a href="#${name.replace("Error.", "error-")}">${name.replace("Error.", "")}</a></p>`
}

const bodies = (content: Readonly<Record<string, MediaType>> | undefined): Html =>
  html`${Object.values(content ?? {}).map((media) => html`${schemaLink(media)}${examplesOf(media)}`)}`

const headersOf = (components: Components, { headers = {} }: Response): Html => {
  const names = Object.keys(headers)
  return names.length === 0
    ? nothing
    : html`<p class="headers">Headers: ${names.map((name, i) => {
        const { required } = resolve(components, "headers", headers[name] ?? { $ref: "" })
        return html`${i === 0 ? "" : ", "}<a href="#header-${name.toLowerCase()}"><code>${name}</code></a>${required ? "" : " (sometimes)"}`
      })}</p>`
}

const answer = (components: Components, status: string, response: Response): Html =>
  html`<details class="answer"><summary><span class="status s${status.charAt(0)}">${
    status === "default" ? "other" : status
  }</span> ${titleOf(status, response)}</summary>${titleOf(status, response) === response.description ? nothing : prose(response.description)}${headersOf(components, response)}${bodies(
    response.content
  )}</details>`

/** An error by its codes, anything else by the first sentence. */
const titleOf = (status: string, { content, description }: Response): string => {
  const codes = Object.keys(content?.["application/json"]?.examples ?? {}).filter((name) => /^[A-Z_]+$/.test(name))
  return status.startsWith("2") || codes.length === 0 ? (description.split("\n")[0] ?? "") : codes.join(", ")
}

const parametersOf = (components: Components, { parameters = [] }: Operation): Html => {
  const all: ReadonlyArray<Parameter> = parameters.map((each) => resolve(components, "parameters", each))
  const places = [
    ["path", "Path"],
    ["query", "Query"],
    ["header", "Headers"]
  ] as const
  return html`${places.map(([place, title]) => {
    const there = all.filter((each) => each.in === place)
    return there.length === 0 ? nothing : html`<h4>${title}</h4>${named(components, there)}`
  })}`
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The request as a command that can be pasted. */
const command = (server: string, method: string, path: string, operation: Operation): string => {
  const [first] = Object.values(operation.requestBody?.content["application/json"]?.examples ?? {})
  const url = `${server}${path.replace(/\{(\w+)\}/g, "ID")}`
  return [
    `curl -sS ${method === "post" || method === "get" ? "" : `-X ${method.toUpperCase()} `}${url}`,
    ...(operation.security.length > 0 ? [`-H "X-API-Key: $KEY"`] : []),
    ...(first === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(first.value))}`])
  ].join(" \\\n  ")
}

/** An operation that tilld serves. */
export const operationHtml = (
  { components, servers }: OpenApiDocument,
  path: string,
  method: string,
  operation: Operation
): Html => {
  const { description, operationId, requestBody, responses, summary } = operation
  return html`<section class="operation" id="${operationId}" aria-labelledby="${operationId}-title">
<h3 id="${operationId}-title"><a href="#${operationId}">${summary}</a></h3>
<p class="route"><span class="method ${method}">${method.toUpperCase()}</span> <code>${path}</code></p>
${prose(description)}
${parametersOf(components, operation)}
${requestBody === undefined ? nothing : html`<h4>Body</h4>${bodies(requestBody.content)}`}
<h4>With curl</h4>${code(command(servers[0]?.url ?? "", method, path, operation), `curl: ${summary}`)}
<h4>Answers</h4>
${Object.entries(responses).map(([status, each]) => answer(components, status, resolve(components, "responses", each)))}
</section>`
}

/** An event that tilld sends. */
export const eventHtml = (kind: string, { description, requestBody, summary }: Operation): Html =>
  html`<section class="operation" id="${kind}" aria-labelledby="${kind}-title">
<h3 id="${kind}-title"><a href="#${kind}">${summary}</a></h3>
<p class="route"><span class="method event">EVENT</span> <code>${kind}</code></p>
${prose(description)}
${Object.values(requestBody?.content ?? {}).map(examplesOf)}
</section>`
