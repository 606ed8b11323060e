import { Effect } from "effect"
import { answer, type Handlers } from "../Http/Handler.ts"
import { Settings } from "../Settings.ts"
import type { DocumentsApi } from "./Api.ts"

export const documentHandlers = Effect.gen(function* () {
  const { limits, server } = yield* Settings
  // Read in and made when somebody first asks: most daemons are never asked, and all of them start.
  const documents = yield* Effect.cached(
    Effect.map(
      Effect.promise(() => import("../Documents.ts")),
      ({ makeDocuments }) => makeDocuments({ publicUrl: server.publicUrl.replace(/\/$/, ""), limits })
    )
  )

  const handlers: Handlers<typeof DocumentsApi> = {
    openapi: () => Effect.map(documents, ({ openApi }) => answer(openApi))
  }
  return handlers
})
