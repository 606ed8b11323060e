import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "@effect/platform"

const written = (contentType: string, description: string, type = "string") =>
  HttpApiSchema.Text({ contentType }).annotations({ jsonSchema: { type, description } })

/** What there is to read of the API, for programs and for people. Open to everybody. */
export const DocumentsApi = HttpApiGroup.make("documents")
  .add(
    HttpApiEndpoint.get("openapi", "/openapi.json").addSuccess(
      written("application/json", "This document, OpenAPI 3.1.", "object")
    )
  )
  .add(HttpApiEndpoint.get("page", "/docs").addSuccess(written("text/html; charset=utf-8", "The reference as a page.")))
  .add(
    HttpApiEndpoint.get("style", "/docs/style.css").addSuccess(written("text/css; charset=utf-8", "The page's style."))
  )
