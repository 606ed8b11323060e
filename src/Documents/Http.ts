import { Effect } from "effect"
import type { Documents } from "../Documents.ts"
import type { DocumentsApi } from "../Http/Api.ts"
import { type Handlers, sharedAnswer } from "../Http/Handler.ts"
import { revalidated } from "../Http/revalidation.ts"
import { Settings } from "../Settings.ts"

/** The page loads only its style, and may not be framed. */
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

/** The documents with their ETags, made once per process. */
const answersOf = ({ openApi, page, style }: Documents) => ({
  openApi: sharedAnswer(openApi, { headers: revalidated(openApi) }),
  page: sharedAnswer(page, { headers: { ...pageHeaders, ...revalidated(page) } }),
  style: sharedAnswer(style, { headers: revalidated(style) })
})

export const documentHandlers = Effect.gen(function* () {
  const { limits, server } = yield* Settings
  // Loaded and made with the first request: most daemons never get one, and the start stays fast.
  let made: ReturnType<typeof answersOf> | undefined
  const make = Effect.map(
    Effect.promise(() => import("../Documents.ts")),
    ({ makeDocuments }) => {
      // Of many first requests, each waits for the import, and one makes them.
      made ??= answersOf(makeDocuments({ publicUrl: server.publicUrl.replace(/\/$/, ""), limits }))
      return made
    }
  )
  const answers = Effect.suspend(() => (made === undefined ? make : Effect.succeed(made)))

  const handlers: Handlers<typeof DocumentsApi> = {
    openapi: () => Effect.map(answers, ({ openApi }) => openApi),
    page: () => Effect.map(answers, ({ page }) => page),
    style: () => Effect.map(answers, ({ style }) => style)
  }
  return handlers
})
