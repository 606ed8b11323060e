import { JSONSchema, type SchemaAST } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { errorBody, errorCodes, unauthorizedBody } from "../Domain/ApiError.ts"
import { WebhookEvent } from "../Domain/Event.ts"
import { headers, sharedResponses } from "./answers.ts"
import { type JsonSchema, nameOf, type OpenApiDocument, type Parameter } from "./openApi.ts"
import { operations, type ToJsonSchema } from "./operations.ts"
import { apiOverview } from "./overview.ts"
import { groupTexts } from "./texts.ts"
import { webhookOperations } from "./webhooks.ts"

/** The settings of an installation that the documents mention. */
export interface Installation {
  /** Without a slash at its end. */
  readonly publicUrl: string
  /** Requests that a key may make. */
  readonly limits: { readonly perMinute: number; readonly perHour: number }
}

const idempotencyKey: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "A value of your choice, 1 to 255 printable ASCII characters. For 24 hours the same request with the same key gets the first response again, without being executed again; refusals are not stored.",
  schema: { type: "string", pattern: "^[\\x20-\\x7e]{1,255}$", minLength: 1, maxLength: 255 },
  example: "order-1-attempt-1"
}

const ifNoneMatch: Parameter = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "The `ETag` of your copy, or several, or `*`: if one is current, the response is 304 without a body.",
  schema: { type: "string" },
  example: '"q3LmJ8kPzQ1v6ySFhS9X0w"'
}

/** A schema without the library's own keywords, and open: responses may get new fields, and metadata has any. */
const tidy = (schema: JsonSchema): JsonSchema => {
  const { additionalProperties: _, title: __, ...rest } = schema as JsonSchema & { readonly title?: string }
  const { anyOf, items, properties } = rest
  return {
    ...rest,
    ...(rest.type === "object" && !properties && { additionalProperties: true }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, tidy(property)]))
    }),
    ...(items && { items: tidy(items) }),
    ...(anyOf && { anyOf: anyOf.map(tidy) })
  }
}

/** The names of request schemas: unknown fields are refused there. */
const requestSchemas = (paths: OpenApiDocument["paths"]): ReadonlySet<string> =>
  new Set(
    Object.values(paths)
      .flatMap((item) => Object.values(item))
      .flatMap(({ requestBody }) => Object.values(requestBody?.content ?? {}))
      .map(({ schema }) => nameOf(schema.$ref ?? ""))
  )

/** The OpenAPI document, generated from the definition that the server uses. */
export const makeDocument = (installation: Installation): OpenApiDocument => {
  const definitions: Record<string, JSONSchema.JsonSchema7> = {}
  const toJsonSchema: ToJsonSchema = (ast: SchemaAST.AST) =>
    tidy(
      JSONSchema.fromAST(ast, {
        definitions,
        definitionPath: "#/components/schemas/",
        target: "openApi3.1"
      }) as JsonSchema
    )
  const paths = operations(toJsonSchema)
  toJsonSchema(WebhookEvent.ast)
  for (const code of errorCodes) toJsonSchema((code === "UNAUTHORIZED" ? unauthorizedBody : errorBody(code)).ast)
  const closed = requestSchemas(paths)
  const schemas = Object.entries(definitions).map(([name, schema]) => {
    return [name, { ...tidy(schema as JsonSchema), ...(closed.has(name) && { additionalProperties: false }) }] as const
  })
  return {
    openapi: "3.1.1",
    info: {
      title: "tilld",
      summary: "Crypto payments on your own machine.",
      description: apiOverview(installation),
      version: packageJson.version,
      license: { name: "MIT", identifier: "MIT" }
    },
    servers: [{ url: installation.publicUrl, description: "This installation" }],
    tags: Object.entries(groupTexts).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: webhookOperations,
    components: {
      schemas: Object.fromEntries(schemas),
      responses: sharedResponses,
      parameters: { "Idempotency-Key": idempotencyKey, "If-None-Match": ifNoneMatch },
      headers,
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          name: "X-API-Key",
          in: "header",
          description:
            "A key that `tilld keys create` printed: `svc_test_…` for test networks, `svc_live_…` for real money. The names in an operation's requirement are the permissions that the key needs. For servers only: never give it to a browser or an app."
        }
      }
    }
  }
}
