import { Effect } from "effect"
import type { Documents } from "../Documents.ts"
import type { DocumentsApi } from "../Http/Api.ts"
import { type Handlers, sharedAnswer } from "../Http/Handler.ts"
import { revalidated } from "../Http/revalidation.ts"
import { Settings } from "../Settings.ts"

/** The page needs nothing but its style, and is nobody's frame. */
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

/** The answers of a daemon's life: its documents and their tags. */
const answersOf = ({ openApi, page, style }: Documents) => ({
  openApi: sharedAnswer(openApi, { headers: revalidated(openApi) }),
  page: sharedAnswer(page, { headers: { ...pageHeaders, ...revalidated(page) } }),
  style: sharedAnswer(style, { headers: revalidated(style) })
})

export const documentHandlers = Effect.gen(function* () {
  const { limits, server } = yield* Settings
  // Read in and made when somebody first asks: most daemons are never asked, and all of them start.
  let made: ReturnType<typeof answersOf> | undefined
  const make = Effect.map(
    Effect.promise(() => import("../Documents.ts")),
    ({ makeDocuments }) => {
      made = answersOf(makeDocuments({ publicUrl: server.publicUrl.replace(/\/$/, ""), limits }))
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
