import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "@effect/platform"

const written = (contentType: string, description: string, type = "string") =>
  HttpApiSchema.Text({ contentType }).annotations({ jsonSchema: { type, description } })

/** What there is to read of the API, for programs and for people. Open to everybody. */
export const DocumentsApi = HttpApiGroup.make("documents").add(
  HttpApiEndpoint.get("openapi", "/openapi.json").addSuccess(
    written("application/json", "This document, OpenAPI 3.1.", "object")
  )
)
