import { Effect } from "effect"
import type { Documents } from "../Documents.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { Settings } from "../Settings.ts"
import type { DocumentsApi } from "./Api.ts"

/** The page needs nothing but its style, and is nobody's frame. */
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

export const documentHandlers = Effect.gen(function* () {
  const { limits, server } = yield* Settings
  // Read in and made when somebody first asks: most daemons are never asked, and all of them start.
  let made: Documents | undefined
  const make = Effect.map(
    Effect.promise(() => import("../Documents.ts")),
    ({ makeDocuments }) => {
      made = makeDocuments({ publicUrl: server.publicUrl.replace(/\/$/, ""), limits })
      return made
    }
  )
  const documents = Effect.suspend(() => (made === undefined ? make : Effect.succeed(made)))

  const handlers: Handlers<typeof DocumentsApi> = {
    openapi: () => Effect.map(documents, ({ openApi }) => answer(openApi)),
    page: () => Effect.map(documents, ({ page }) => answer(page, { headers: pageHeaders })),
    style: () => Effect.map(documents, ({ style }) => answer(style))
  }
  return handlers
})
