import * as fc from "fast-check"
import { type JsonSchema, nameOf, type OpenApiDocument, type OperationObject } from "../../src/Documents/openApi.ts"
import { resolve } from "../lib/openapi.ts"
import { worstTexts } from "../lib/worstTexts.ts"
import { bodies } from "./bodies.ts"
import { bySchema, oddTexts } from "./bySchema.ts"

/** Whose key a request has: `odd` is text that is none. */
export type KeyKind = "good" | "reader" | "live" | "odd" | "none"

/** A request before it meets what the server has answered by then: `known` picks among the ids and cursors of that. */
export interface Drawn {
  readonly method: string
  /** Of the document, with `{id}`; or anything. */
  readonly path: string
  readonly id: string | { readonly known: number }
  readonly query: ReadonlyArray<readonly [name: string, value: string | { readonly known: number }]>
  readonly key: KeyKind
  readonly oddKey: string
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: Buffer | undefined
  readonly chunked: boolean
  /** Puts the id of a known quote into the body. */
  readonly quote: number | undefined
}

const known = fc.nat(1_000).map((pick) => ({ known: pick }))
const oddText = fc.oneof(
  fc.constantFrom(...oddTexts),
  fc.string({ maxLength: 30 }),
  fc.fullUnicodeString({ maxLength: 20 })
)
const id = fc.oneof({ weight: 3, arbitrary: known }, { weight: 1, arbitrary: oddText })

/** With the rest of a request below the 16 KiB that its headers may have. */
const worst = fc.constantFrom(...worstTexts([])(12_000).map(([, text]) => text))

// A byte above 0x7e is Latin-1 to Node; below a space are those that end a header.
const headerText = fc.oneof(
  fc.constantFrom("", " ", "x".repeat(300), "x".repeat(20_000), "é", "\u0080", "\u0001", "\t", ",", '"'),
  fc.stringMatching(/^[\x20-\x7e]{0,40}$/),
  worst.filter((text) => /^[\x20-\x7e]*$/.test(text))
)
const types = [
  "application/json",
  "application/json; charset=utf-8",
  "application/json;charset=utf-16",
  "text/plain",
  "",
  "application/jsonp",
  "multipart/form-data"
]
const oneHeader = fc.oneof(
  fc.tuple(fc.constant("idempotency-key"), fc.oneof(fc.constantFrom("a", "b", "c"), headerText)),
  fc.tuple(fc.constant("content-type"), fc.constantFrom(...types)),
  fc.tuple(
    fc.constantFrom("content-encoding", "accept", "accept-encoding", "cookie", "x-request-id", "upgrade"),
    headerText
  ),
  fc.tuple(fc.constantFrom("expect", "range", "authorization", "x-http-method-override", "__proto__"), headerText),
  fc.tuple(fc.constant("if-none-match"), fc.oneof(fc.constantFrom("*", '"a", W/"b"', '"'), headerText)),
  fc.tuple(fc.constant("connection"), fc.constantFrom("close", "keep-alive", "x")),
  fc.tuple(fc.constant("x-forwarded-for"), headerText)
)

const queryOf = (
  document: OpenApiDocument,
  { parameters = [] }: OperationObject,
  valueFor: (schema: JsonSchema) => fc.Arbitrary<unknown>
) => {
  const params = parameters
    .map((one) => resolve(document.components, "parameters", one))
    .filter((one) => one.in === "query")
  const valid = params.map(({ name, schema }) => fc.tuple(fc.constant(name), valueFor(schema).map(String)))
  const names = fc.constantFrom(...params.map(({ name }) => name), "limitt", "__proto__", "")
  const odd = fc.tuple(names, fc.oneof(oddText, worst, fc.constantFrom("detecting", "0", "101", "1e2", "20 ")))
  const cursor = fc.tuple(fc.constant("cursor"), fc.oneof(known, oddText))
  const some = fc.array(fc.oneof(...valid, ...valid, cursor), { maxLength: 3 })
  return fc.oneof(
    { weight: 5, arbitrary: params.length === 0 ? fc.constant([]) : some },
    { weight: 1, arbitrary: fc.array(odd, { maxLength: 3 }) }
  )
}

/** Requests to an operation of the document, and around it. */
const around = (
  document: OpenApiDocument,
  path: string,
  method: string,
  operation: OperationObject
): fc.Arbitrary<Drawn> => {
  const valueFor = bySchema(document)
  const media = operation.requestBody?.content["application/json"]
  const schema =
    media?.schema.$ref === undefined ? media?.schema : document.components.schemas[nameOf(media.schema.$ref)]
  const anyBody = fc.oneof(
    { weight: 9, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(Buffer.from("{}"), Buffer.from("x".repeat(70_000))) }
  )
  const other = fc.constantFrom(
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "PROPFIND",
    "BREW",
    "get"
  )
  return fc.record({
    method: fc.oneof({ weight: 12, arbitrary: fc.constant(method.toUpperCase()) }, { weight: 1, arbitrary: other }),
    path: fc.constant(path),
    id,
    query: queryOf(document, operation, valueFor),
    key: fc.oneof(
      { weight: 16, arbitrary: fc.constant<KeyKind>("good") },
      { weight: 4, arbitrary: fc.constantFrom<KeyKind>("reader", "live", "odd", "none") }
    ),
    oddKey: fc.oneof(
      headerText,
      fc.hexaString({ minLength: 64, maxLength: 64 }).map((hex) => `svc_test_${hex}`)
    ),
    headers: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(oneHeader, { maxLength: 3 }) }
    ),
    body: media === undefined ? anyBody : bodies(media, schema?.properties ?? {}, valueFor),
    chunked: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    quote: fc.oneof(
      { weight: path === "/v1/payments" ? 4 : 50, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.nat(1_000) }
    )
  })
}

const lost = fc.constantFrom(
  "/v1",
  "/v1/payments/",
  "/v1/payments/a/b",
  "/v1//payments",
  "/v2/payments",
  "*",
  "/%",
  "/v1/payments%00",
  "/.git"
)

// Its answer has no end.
const isStream = ({ responses }: OperationObject): boolean => JSON.stringify(responses).includes("text/event-stream")

/** Every operation of the document that ends as often as the others, and now and then a path that is not there. */
export const requests = (document: OpenApiDocument): fc.Arbitrary<Drawn> => {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => !isStream(operation))
      .map(([method, operation]) => around(document, path, method, operation))
  )
  const [first] = operations
  if (first === undefined) throw new Error("the document has no operation")
  const nowhere = fc.tuple(first, lost).map(([drawn, path]) => ({ ...drawn, path }))
  return fc.oneof(...operations.map((arbitrary) => ({ weight: 20, arbitrary })), { weight: 10, arbitrary: nowhere })
}
