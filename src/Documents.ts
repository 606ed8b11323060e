import { type Installation, makeDocument } from "./Documents/document.ts"
import { renderPage } from "./Documents/page.ts"
import { style } from "./Documents/style.ts"

export interface Documents {
  /** OpenAPI 3.1, as JSON. */
  readonly openApi: string
  /** The reference, as HTML. */
  readonly page: string
  /** The page's CSS. */
  readonly style: string
}

/** Everything there is to read of the API, made at once. */
export const makeDocuments = (installation: Installation): Documents => {
  const document = makeDocument(installation)
  return { openApi: JSON.stringify(document), page: renderPage(document), style }
}
