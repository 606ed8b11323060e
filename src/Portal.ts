import { Effect } from "effect"
import { errorPage } from "./Pages/ErrorPage.tsx"
import type { PageRoom } from "./Pages.ts"

/** Answers the requests below its prefix. */
export const makePortal = Effect.succeed<PageRoom>(({ requestId }) =>
  Effect.succeed(errorPage("portal", { status: 404, title: "Not found", text: "There is nothing here." }, requestId))
)
