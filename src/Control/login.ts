import { Effect, Schema } from "effect"
import { linkPath, makeLink } from "../Auth/loginLinks.ts"
import { TooMany, UnknownAccount } from "../Domain/AccountErrors.ts"
import { AccountId } from "../Domain/Ids.ts"
import { AccountRole } from "../Domain/Person.ts"
import { Settings } from "../Settings.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import { administering } from "./controlHandler.ts"
import { Name } from "./controlRequests.ts"

/** `portal.enabled` is false: a link would lead nowhere. */
export class PortalDisabled extends Schema.TaggedError<PortalDisabled>()("PortalDisabled", {
  message: Schema.String
}) {}

/** Makes a one-time link into the portal, for the person of this name and role, who is made if there is none. */
export class MakeLoginLink extends Schema.TaggedRequest<MakeLoginLink>()("MakeLoginLink", {
  payload: {
    name: Name,
    as: Schema.Union(
      Schema.Struct({ role: Schema.Literal("operator") }),
      Schema.Struct({ role: AccountRole, account: AccountId })
    )
  },
  success: Schema.Struct({ url: Schema.String }),
  failure: Schema.Union(UnknownAccount, TooMany, PortalDisabled, StoreUnavailable)
}) {}

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
