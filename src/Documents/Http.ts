import { Effect } from "effect"
import type { DocumentsApi } from "../Http/Api.ts"
import { type Handlers, type HttpAnswer, sharedAnswer } from "../Http/Handler.ts"
import { revalidated } from "../Http/HttpReply.ts"
import { Settings } from "../Settings.ts"

export const documentHandlers = Effect.gen(function* () {
  const { limits, server } = yield* Settings
  // Loaded and made with the first request: most daemons never get one, and the start stays fast.
  let made: HttpAnswer<string> | undefined
  const make = Effect.map(
    Effect.promise(() => import("../Documents.ts")),
    ({ makeOpenApi }) => {
      if (made !== undefined) return made
      // Of many first requests, each waits for the import, and one makes it.
      const openApi = makeOpenApi({ publicUrl: server.publicUrl.replace(/\/$/, ""), limits })
      made = sharedAnswer(openApi, { headers: revalidated(openApi) })
      return made
    }
  )

  const handlers: Handlers<typeof DocumentsApi> = {
    openapi: () => Effect.suspend(() => (made === undefined ? make : Effect.succeed(made)))
  }
  return handlers
})
