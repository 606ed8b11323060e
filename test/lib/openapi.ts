import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import {
  type Components,
  type HeaderObject,
  nameOf,
  type OpenApiDocument,
  type OperationObject,
  type PathItem,
  type Reference,
  type Response
} from "../../src/Documents/openApi.ts"
import { type ErrorCode, errorCodes, statusOf } from "../../src/Domain/ApiError.ts"

type Component<Kind extends keyof Components> = Components[Kind][string]

/** The component that a reference names; any other value is returned as it is. */
export const resolve = <Kind extends "headers" | "parameters" | "responses">(
  components: Components,
  kind: Kind,
  item: Component<Kind> | Reference
): Component<Kind> => ("$ref" in item ? (components[kind][nameOf(item.$ref)] as Component<Kind>) : item)

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The document with every object closed that it names the properties of: clients must live with more than they know,
 * and tilld must not say more than it has documented.
 */
const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed)
  if (!isRecord(value)) return value
  const inside = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, closed(each)]))
  const isOpen = value["type"] === "object" && isRecord(value["properties"]) && !("additionalProperties" in value)
  return isOpen ? { ...inside, additionalProperties: false } : inside
}

const formats = {
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  uri: (text: string) => URL.canParse(text),
  "uri-reference": (text: string) => URL.canParse(text, "http://any.example")
}

const escaped = (part: string): string => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))

/** Checks values against the schemas of a document, by their place in it. */
const compile = (document: OpenApiDocument) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, formats })
  ajv.addSchema(closed(document) as object, "openapi")
  return (place: ReadonlyArray<string>, value: unknown): ReadonlyArray<string> => {
    const pointer = place.map(escaped).join("/")
    const validate: ValidateFunction | undefined = ajv.getSchema(`openapi#/${pointer}`)
    if (validate === undefined) return [`${place.join("/")} is not in the document`]
    validate(value)
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || "it"} ${message} ${JSON.stringify(params)}`
    )
  }
}

const compiled = new WeakMap<OpenApiDocument, ReturnType<typeof compile>>()

/** What is wrong with a value by the schema at a place of the document, whose objects may hold nothing undocumented. */
export const problemsAt = (
  document: OpenApiDocument,
  place: ReadonlyArray<string>,
  value: unknown
): ReadonlyArray<string> => {
  const check = compiled.get(document) ?? compile(document)
  compiled.set(document, check)
  return check(place, value)
}

const matches = (template: string, path: string): boolean => {
  const parts = path.split("/")
  const pattern = template.split("/")
  return (
    parts.length === pattern.length &&
    pattern.every((part, i) => (part.startsWith("{") ? parts[i] !== "" : part === parts[i]))
  )
}

/** A path as it is, before one with parameters in it. */
const find = ({ paths }: OpenApiDocument, path: string): readonly [template: string, item: PathItem] | undefined =>
  Object.entries(paths).find(([template]) => template === path) ??
  Object.entries(paths).find(([template]) => matches(template, path))

/** What can be answered whatever is asked for, and in place of what. */
const everywhere: ReadonlyArray<ErrorCode> = [
  "BAD_REQUEST",
  "REQUEST_TIMEOUT",
  "HEADERS_TOO_LARGE",
  "INTERNAL",
  "SHUTTING_DOWN",
  "TOO_MANY_CONNECTIONS",
  "OVERLOADED",
  "STORE_UNAVAILABLE"
]

const codeOf = (body: unknown): unknown =>
  isRecord(body) && isRecord(body["error"]) ? body["error"]["code"] : undefined

const headerProblems = (document: OpenApiDocument, response: Response, headers: Headers): ReadonlyArray<string> => {
  const listed = response.headers ?? {}
  const undocumented = Object.keys(document.components.headers)
    .filter((name) => headers[name.toLowerCase()] !== undefined && listed[name] === undefined)
    .map((name) => `header ${name} is not documented here`)
  const wrong = Object.entries(listed).flatMap(([name, item]) => {
    const { required, schema }: HeaderObject = resolve(document.components, "headers", item)
    const value = headers[name.toLowerCase()]
    if (value === undefined) return required ? [`header ${name} is missing`] : []
    if (typeof value !== "string") return [`header ${name} is there more than once`]
    const typed = schema.type === "integer" && /^\d+$/.test(value) ? Number(value) : value
    return problemsAt(document, ["components", "headers", name, "schema"], typed).map((why) => `header ${name}: ${why}`)
  })
  return [...undocumented, ...wrong]
}

const bodyProblems = (
  document: OpenApiDocument,
  place: ReadonlyArray<string>,
  { content }: Response,
  headers: Headers,
  body: unknown
): ReadonlyArray<string> => {
  if (content === undefined) return body === "" ? [] : ["a body is not documented"]
  const type = String(headers["content-type"]).split(";")[0] ?? ""
  if (content[type] === undefined) return [`${type} is not documented`]
  return problemsAt(document, [...place, "content", type, "schema"], body)
}

/** An error has the status of its code, and the request id of its header. */
const errorProblems = (status: number, headers: Headers, body: unknown): ReadonlyArray<string> => {
  const code = errorCodes.find((each) => each === codeOf(body))
  if (code === undefined) return []
  const { requestId = headers["x-request-id"] } = (body as { error: { requestId?: unknown } }).error
  return [
    ...(statusOf[code] === status ? [] : [`${code} comes with ${statusOf[code]}, and not with ${status}`]),
    ...(requestId === headers["x-request-id"] ? [] : ["requestId is not that of X-Request-Id"])
  ]
}

/** An answer where no operation is: at an unknown path, or to a method that a path does not take. */
const validateRefusal = (
  document: OpenApiDocument,
  allowed: ReadonlyArray<ErrorCode>,
  status: number,
  headers: Headers,
  body: unknown
): ReadonlyArray<string> => {
  const code = allowed.find((each) => each === codeOf(body))
  if (code === undefined) return [`${status} ${codeOf(body)} is none of ${allowed.join(", ")}`]
  return [
    ...problemsAt(document, ["components", "schemas", `Error.${code}`], body),
    ...errorProblems(status, headers, body),
    ...(code === "METHOD_NOT_ALLOWED" && headers["allow"] === undefined ? ["header Allow is missing"] : [])
  ]
}

/**
 * What is wrong with an answer of the server by its document: nothing, if it is empty. `path` may have a query string,
 * header names are in lower case, `body` is the parsed JSON, or the text of an answer that is not JSON.
 */
export const validateAnswer = (
  document: OpenApiDocument,
  method: string,
  path: string,
  status: number,
  headers: Headers,
  body: unknown
): ReadonlyArray<string> => {
  const found = find(document, path.split("?")[0] ?? "")
  if (found === undefined) {
    const codes: ReadonlyArray<ErrorCode> = ["NOT_FOUND", ...everywhere]
    if (method !== "HEAD") return validateRefusal(document, codes, status, headers, body)
    return codes.some((code) => statusOf[code] === status) ? [] : [`HEAD has ${status}`]
  }
  const [template, item] = found
  const asked = method === "HEAD" ? "get" : method.toLowerCase()
  const operation: OperationObject | undefined = item[asked]
  if (operation === undefined) {
    const isKeyed = Object.values(item).some(({ security }) => security.length > 0)
    const refusals: ReadonlyArray<ErrorCode> = isKeyed ? ["UNAUTHORIZED", "RATE_LIMITED"] : []
    const codes: ReadonlyArray<ErrorCode> = ["METHOD_NOT_ALLOWED", ...refusals, ...everywhere]
    if (method !== "HEAD") return validateRefusal(document, codes, status, headers, body)
    return codes.some((code) => statusOf[code] === status) ? [] : [`HEAD has ${status}`]
  }
  if (status === 405) return [`${method} ${path} is documented, and answered 405`]
  const by = String(status) in operation.responses ? String(status) : "default"
  const documented = operation.responses[by]
  if (documented === undefined) return [`${status} is not documented`]
  const response = resolve(document.components, "responses", documented)
  const place =
    "$ref" in documented ? documented.$ref.slice("#/".length).split("/") : ["paths", template, asked, "responses", by]
  return [
    ...headerProblems(document, response, headers),
    ...(method === "HEAD" ? [] : bodyProblems(document, place, response, headers, body)),
    ...errorProblems(status, headers, body)
  ]
}
