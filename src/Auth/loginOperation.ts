import { Effect, Schema } from "effect"
import { TooMany, UnknownAccount } from "../Domain/Account.ts"
import { AccountId } from "../Domain/Ids.ts"
import { Role } from "../Domain/Person.ts"
import { must } from "../lib/annotations.ts"
import { accountRule, GivenName, maybe, nameLength } from "../Operations/inputFields.ts"
import { withFlag } from "../Operations/inputText.ts"
import { operation } from "../Operations/operation.ts"
import { Settings } from "../Settings.ts"
import { linkPath, makeLink } from "./loginLinks.ts"

/** `portal.enabled` is false: a link would lead nowhere. */
export class PortalDisabled extends Schema.TaggedError<PortalDisabled>()("PortalDisabled", {
  message: Schema.String
}) {}

/** Without an account an operator's, otherwise an admin's, unless the role says more. */
const roleOf = ({ account, role = account === undefined ? "operator" : "admin" }: Holder) => role

interface Holder {
  readonly account?: AccountId
  readonly role?: Role
}

export const makeLoginLink = operation({
  name: "login",
  summary:
    "Print a one-time link that signs a person in to the portal. The same name, role and account are the same person",
  input: {
    account: withFlag(maybe(must(accountRule, AccountId)), {
      about: "The account that the person administers or views; without it the person is an operator",
      value: "ID"
    }),
    role: withFlag(maybe(Role), {
      about: "operator: all accounts, chains and people; admin: one account; viewer: reads one account"
    }),
    name: withFlag(GivenName, {
      about: `What the person is called, up to ${nameLength} characters`,
      value: "TEXT",
      isOptional: true
    })
  },
  check: (holder) => {
    if ((holder.account === undefined) === (roleOf(holder) === "operator")) return undefined
    return holder.account === undefined
      ? "Say of which account: only an operator belongs to none"
      : "An operator belongs to no account: leave out the account, or the role"
  },
  output: Schema.Struct({ url: Schema.String }),
  refusals: [UnknownAccount, TooMany, PortalDisabled],
  audit: ({ name, ...holder }) => ({ name, role: roleOf(holder), account: holder.account }),
  run: Effect.fnUntraced(function* ({ name, ...holder }, _, note) {
    const { portal, server } = yield* Settings
    if (!portal.enabled) {
      return yield* new PortalDisabled({ message: "The portal is off: set portal.enabled to true, and reload tilld" })
    }
    const who = { name, role: roleOf(holder), account: holder.account }
    const { token } = yield* makeLink(who, ({ id }) => note({ person: id }))
    return { url: server.publicUrl + linkPath(token) }
  })
})
