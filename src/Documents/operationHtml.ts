import { errorCodes } from "../Domain/ApiError.ts"
import { commonHeaders } from "./answers.ts"
import { errorsOf, type SharedErrors } from "./errorsHtml.ts"
import { named } from "./fields.ts"
import { type Html, html, nothing } from "./html.ts"
import {
  type Components,
  type MediaType,
  nameOf,
  type OpenApiDocument,
  type OperationObject,
  type Parameter,
  type Response,
  resolve
} from "./openApi.ts"
import { code, prose } from "./prose.ts"

const isError = (name: string): boolean => errorCodes.some((code) => code === name)

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

const examplesOf = ({ examples = {} }: MediaType): Html =>
  html`${Object.entries(examples).map(
    ([name, { summary = name, value }]) =>
      html`<figure><figcaption>${summary}</figcaption>${code(shown(value))}</figure>`
  )}`

/** The same, each folded: they repeat what is said elsewhere. */
const foldedExamples = ({ examples = {} }: MediaType): Html =>
  html`${Object.entries(examples).map(
    ([name, { summary = name, value }]) =>
      html`<details class="answer"><summary>Example: ${summary}</summary>${code(shown(value))}</details>`
  )}`

/** Where the fields of a body are. */
const schemaLink = ({ schema }: MediaType): Html =>
  schema.$ref === undefined ? nothing : html`<p><a href="#${nameOf(schema.$ref)}">${nameOf(schema.$ref)}</a></p>`

const bodies = (content: Readonly<Record<string, MediaType>>, examples: (media: MediaType) => Html): Html =>
  html`${Object.values(content).map((media) => html`${schemaLink(media)}${examples(media)}`)}`

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
  )}${bodies(Object.fromEntries(media), examplesOf)}</details>`
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

/** An operation that tilld serves. */
export const operationHtml = (
  { components, servers }: OpenApiDocument,
  shared: ReadonlyArray<SharedErrors>,
  path: string,
  method: string,
  operation: OperationObject
): Html => {
  const { description, requestBody, responses } = operation
  return html`<p class="route"><span class="method">${method.toUpperCase()}</span> <code>${path}</code></p>
${prose(description)}
${parametersOf(components, operation)}
${requestBody === undefined ? nothing : html`<h3>Body</h3>${bodies(requestBody.content, foldedExamples)}`}
<h3>With curl</h3>${code(command(servers[0]?.url ?? "", method, path, operation))}
<h3>Answers</h3>
${Object.entries(responses).map(([status, each]) => answer(components, status, resolve(components, "responses", each)))}
${errorsOf(components, shared, operation)}`
}

/** An event that tilld sends. */
export const eventHtml = (kind: string, { description, requestBody }: OperationObject): Html =>
  html`<p class="route"><span class="method">EVENT</span> <code>${kind}</code></p>
${prose(description)}
${Object.values(requestBody?.content ?? {}).map(foldedExamples)}`
