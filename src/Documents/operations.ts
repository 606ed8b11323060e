import { HttpApi, HttpApiSchema, HttpMethod } from "@effect/platform"
import { Option, type Schema, SchemaAST } from "effect"
import { Api } from "../Api.ts"
import { ApiKeyAuth, requiredPermissions } from "../Auth/Api.ts"
import { type ErrorCode, errorCodes } from "../Domain/ApiError.ts"
import type { Permission } from "../Domain/ApiKey.ts"
import { either, errorResponses, type HeaderName, successHeaders } from "./answers.ts"
import { type OperationExamples, operationExamples } from "./examples.ts"
import {
  type JsonSchema,
  type OperationObject,
  type Parameter,
  type Reference,
  type Response,
  refer
} from "./openApi.ts"
import { type OperationId, operationTexts } from "./texts.ts"

type Endpoint = Parameters<Parameters<typeof HttpApi.reflect>[1]["onEndpoint"]>[0]

/** Makes JSON Schemas, the named ones into `definitions`. */
export type ToJsonSchema = (ast: SchemaAST.AST) => JsonSchema

const parametersOf = (
  schema: Option.Option<Schema.Schema.All>,
  place: Parameter["in"],
  toJsonSchema: ToJsonSchema
): ReadonlyArray<Parameter> => {
  if (Option.isNone(schema)) return []
  const { properties = {}, required = [] } = toJsonSchema(schema.value.ast)
  return Object.entries(properties).map(([name, { description = "", ...rest }]) => ({
    name,
    in: place,
    required: required.includes(name),
    description,
    schema: rest
  }))
}

/** The codes that a definition declares: each is a schema by the name of `Error.<code>`. */
const declaredCodes = ({ errors }: Endpoint): ReadonlyArray<ErrorCode> =>
  Array.from(errors.values()).flatMap(({ ast }) =>
    ast.pipe(
      Option.map((some) => (SchemaAST.isUnion(some) ? some.types : [some])),
      Option.getOrElse(() => []),
      (types) => types.map((type) => Option.getOrElse(SchemaAST.getIdentifierAnnotation(type), () => "")),
      (names) => errorCodes.filter((code) => names.includes(`Error.${code}`))
    )
  )

/** The error codes of an operation in the order of the checks: its own, and those of all requests of its kind. */
const codesOf = (declared: ReadonlyArray<ErrorCode>, keyed: boolean, takesBody: boolean): ReadonlyArray<ErrorCode> => {
  const possible: ReadonlyArray<ErrorCode> = [
    "BAD_REQUEST",
    "VALIDATION_ERROR",
    "METHOD_NOT_ALLOWED",
    "SHUTTING_DOWN",
    "TOO_MANY_CONNECTIONS",
    "OVERLOADED",
    ...(keyed ? (["UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED", "STORE_UNAVAILABLE"] as const) : []),
    ...(takesBody ? (["INVALID_JSON", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"] as const) : []),
    ...declared
  ]
  return errorCodes.filter((code) => possible.includes(code))
}

/** Headers of a response, in addition to those that all have. */
const extraHeaders = (id: OperationId, takesBody: boolean, mayBeKept: boolean) => ({
  always: [
    ...(id === "payments.create" ? (["Location"] satisfies ReadonlyArray<HeaderName>) : []),
    ...(mayBeKept ? (["ETag"] satisfies ReadonlyArray<HeaderName>) : [])
  ],
  sometimes: takesBody ? (["Idempotent-Replayed"] satisfies ReadonlyArray<HeaderName>) : []
})

/** The media type without its parameters, as OpenAPI names it. */
const mediaType = (ast: SchemaAST.AST): string => HttpApiSchema.getEncoding(ast).contentType.split(";")[0] ?? ""

const successes = (
  { successes }: Endpoint,
  id: OperationId,
  { answers }: OperationExamples,
  toJsonSchema: ToJsonSchema,
  headersOfSuccess: Response["headers"]
): Readonly<Record<string, Response>> =>
  Object.fromEntries(
    Array.from(successes, ([status, { ast }]) => {
      const examples = answers[status]
      if (Option.isNone(ast) || examples === undefined) throw new Error(`${id} has no example of its ${status}`)
      const [first] = Object.values(examples)
      const content = { [mediaType(ast.value)]: { schema: toJsonSchema(ast.value), examples } }
      return [String(status), { description: `${first?.summary}.`, headers: headersOfSuccess ?? {}, content }]
    })
  )

const merge = (
  good: Readonly<Record<string, Response>>,
  bad: Readonly<Record<string, Response | Reference>>
): OperationObject["responses"] => ({
  ...good,
  ...Object.fromEntries(
    Object.entries(bad).map(([status, response]) => [
      status,
      "$ref" in response ? response : either(good[status], response)
    ])
  )
})

const needs = (permissions: ReadonlyArray<Permission>): string =>
  `Needs the permission${permissions.length === 1 ? "" : "s"} ${permissions.map((each) => `\`${each}\``).join(" and ")}.`

/** Whether a request needs a body: no body counts as an object without fields. */
const isRequired = ({ ast }: Schema.Schema.All): boolean =>
  SchemaAST.getPropertySignatures(SchemaAST.encodedAST(ast)).some(({ isOptional }) => !isOptional)

const operationOf = (reflected: Endpoint, toJsonSchema: ToJsonSchema): OperationObject => {
  const { endpoint, group, mergedAnnotations, middleware } = reflected
  const operationId = `${group.identifier}.${endpoint.name}` as OperationId
  const { description, summary } = operationTexts[operationId]
  const examples: OperationExamples = operationExamples[operationId]
  const permissions = requiredPermissions(mergedAnnotations)
  const keyed = Array.from(middleware).some(({ key }) => key === ApiKeyAuth.key)
  const takesBody = HttpMethod.hasBody(endpoint.method) && Option.isSome(endpoint.payloadSchema)
  // Responses that change only with the version and the configuration.
  const mayBeKept = group.identifier === "documents"
  const { always, sometimes } = extraHeaders(operationId, takesBody, mayBeKept)
  const parameters = [
    ...parametersOf(endpoint.pathSchema, "path", toJsonSchema),
    ...parametersOf(endpoint.urlParamsSchema, "query", toJsonSchema),
    ...parametersOf(endpoint.headersSchema, "header", toJsonSchema),
    ...(takesBody ? [refer("parameters", "Idempotency-Key")] : []),
    ...(mayBeKept ? [refer("parameters", "If-None-Match")] : [])
  ]
  const good = successes(reflected, operationId, examples, toJsonSchema, successHeaders(keyed, always, sometimes))
  const codes = codesOf(declaredCodes(reflected), keyed, takesBody)
  return {
    operationId,
    tags: [group.identifier],
    summary,
    description: permissions.length === 0 ? description : `${description}\n\n${needs(permissions)}`,
    security: permissions.length === 0 ? [] : [{ apiKey: permissions }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(Option.isSome(endpoint.payloadSchema) && takesBody
      ? {
          requestBody: {
            required: isRequired(endpoint.payloadSchema.value),
            content: {
              "application/json": {
                schema: toJsonSchema(endpoint.payloadSchema.value.ast),
                ...(examples.request === undefined ? {} : { examples: examples.request })
              }
            }
          }
        }
      : {}),
    responses: {
      ...merge(good, errorResponses(codes, keyed)),
      ...(mayBeKept ? { 304: refer("responses", "NotModified") } : {})
    }
  }
}

/** Every operation of the definition, by path and method. */
export const operations = (
  toJsonSchema: ToJsonSchema
): Readonly<Record<string, Readonly<Record<string, OperationObject>>>> => {
  const paths: Record<string, Record<string, OperationObject>> = {}
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: (reflected) => {
      const { method, path } = reflected.endpoint
      const template = path.replace(/:(\w+)/g, "{$1}")
      paths[template] = { ...paths[template], [method.toLowerCase()]: operationOf(reflected, toJsonSchema) }
    }
  })
  return paths
}
