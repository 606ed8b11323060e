import { type Installation, makeDocument } from "./Documents/document.ts"

export interface Documents {
  /** OpenAPI 3.1, as JSON. */
  readonly openApi: string
}

/** Everything there is to read of the API, made at once. */
export const makeDocuments = (installation: Installation): Documents => {
  const document = makeDocument(installation)
  return { openApi: JSON.stringify(document) }
}
