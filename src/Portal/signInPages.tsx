/** Signing in and out. */
import { Effect } from "effect"
import type { SignedIn } from "../Auth/sessions.ts"
import { signOut } from "../Auth/sessions.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { pageReply, seeOther } from "../Pages/reply.tsx"
import type { Desk } from "./Desk.ts"
import { Outside } from "./Outside.tsx"

/** Where somebody who is not signed in is sent, to come back after it. */
export const signInPath = ({ path, search }: Pick<PageRequest, "path" | "search">): string =>
  `/portal/sign-in?${new URLSearchParams({ next: search === "" ? path : `${path}?${search}` })}`

export const signInPage = () =>
  Effect.succeed(
    pageReply(
      <Outside title="Sign in">
        <p>
          Whoever runs this tilld gives you a link that signs you in, once: <code>tilld login</code> prints it.
        </p>
      </Outside>
    )
  )

/** Ends the session. What the browser still shows of it is not to be shown again. */
export const leave = (desk: Desk, signedIn: SignedIn | undefined) =>
  Effect.gen(function* () {
    if (signedIn !== undefined) yield* signOut(signedIn)
    return seeOther("/portal/sign-in", { "set-cookie": desk.cookie.clear, "clear-site-data": '"cache"' })
  })
