import { Effect } from "effect"
import { linkPath, makeLink } from "../Auth/loginLinks.ts"
import { Settings } from "../Settings.ts"
import { administering } from "./controlHandler.ts"
import { MakeLoginLink, PortalDisabled } from "./loginRequest.ts"

const accountOf = ({ as }: Pick<MakeLoginLink, "as">) => ("account" in as ? as.account : undefined)

export const makeLoginLink = administering(
  MakeLoginLink,
  (request) => ({
    act: "login",
    detail: { name: request.name, role: request.as.role, account: accountOf(request) }
  }),
  Effect.fnUntraced(function* (request, _, note) {
    const { portal, server } = yield* Settings
    if (!portal.enabled) {
      return yield* new PortalDisabled({ message: "The portal is off: set portal.enabled to true, and restart tilld" })
    }
    const who = { name: request.name, role: request.as.role, account: accountOf(request) }
    const { token } = yield* makeLink(who, ({ id }) => note({ person: id }))
    return { url: server.publicUrl + linkPath(token) }
  })
)
