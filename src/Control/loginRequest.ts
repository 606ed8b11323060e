import { Schema } from "effect"
import { GivenName } from "../Auth/inputFields.ts"
import { TooMany, UnknownAccount } from "../Domain/AccountErrors.ts"
import { AccountId } from "../Domain/Ids.ts"
import { AccountRole } from "../Domain/Person.ts"
import { StoreUnavailable } from "../Sql/Db.ts"

/** `portal.enabled` is false: a link would lead nowhere. */
export class PortalDisabled extends Schema.TaggedError<PortalDisabled>()("PortalDisabled", {
  message: Schema.String
}) {}

/** Makes a one-time link into the portal, for the person of this name and role, who is made if there is none. */
export class MakeLoginLink extends Schema.TaggedRequest<MakeLoginLink>()("MakeLoginLink", {
  payload: {
    name: GivenName,
    as: Schema.Union(
      Schema.Struct({ role: Schema.Literal("operator") }),
      Schema.Struct({ role: AccountRole, account: AccountId })
    )
  },
  success: Schema.Struct({ url: Schema.String }),
  failure: Schema.Union(UnknownAccount, TooMany, PortalDisabled, StoreUnavailable)
}) {}
