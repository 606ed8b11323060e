import { Command, Options } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { nameLength } from "../Auth/inputFields.ts"
import { Invocation } from "../Control/Invocation.ts"
import { MakeLoginLink } from "../Control/loginRequest.ts"
import { AccountId } from "../Domain/Ids.ts"
import { Role } from "../Domain/Person.ts"
import { common, UsageError } from "./commonOptions.ts"
import { name, refuse } from "./options.ts"
import { printResult } from "./result.ts"

const account = Options.text("account").pipe(
  Options.withPseudoName("ID"),
  Options.withDescription("The account that the person administers or views; without it the person is an operator"),
  Options.mapEffect((id) =>
    Option.match(Schema.decodeUnknownOption(AccountId)(id), {
      onNone: () => refuse("--account must be an account's id, as tilld accounts list shows it"),
      onSome: Effect.succeed
    })
  ),
  Options.optional
)

const role = Options.choice("role", Role.literals).pipe(
  Options.withDescription("operator: all accounts, chains and people; admin: one account; viewer: reads one account"),
  Options.optional
)

/** Whose link it is: an operator's without an account, otherwise an admin's, unless the role says more. */
const holderOf = (role: Option.Option<Role>, account: Option.Option<AccountId>) => {
  if (Option.isNone(account)) {
    return Option.getOrElse(role, () => "operator") === "operator"
      ? Effect.succeed({ role: "operator" as const })
      : new UsageError({ message: "Say of which account with --account: only an operator belongs to none" })
  }
  const given = Option.getOrElse(role, (): Role => "admin")
  return given === "operator"
    ? new UsageError({ message: "An operator belongs to no account: leave out --account, or the role" })
    : Effect.succeed({ role: given, account: account.value })
}

/** The user of this machine as a name: printable, and not too long. */
const nameOf = (user: string) => user.replace(/\p{C}/gu, "").slice(0, nameLength) || "somebody"

/** `tilld login`: prints a one-time link into the portal. */
export const loginCommand = Command.make(
  "login",
  {
    ...common,
    account,
    role,
    name: name("the person").pipe(Options.optional)
  },
  Effect.fnUntraced(function* (options) {
    const { user } = yield* Invocation
    const as = yield* holderOf(options.role, options.account)
    yield* printResult(
      options,
      "login",
      new MakeLoginLink({ name: Option.getOrElse(options.name, () => nameOf(user)), as }),
      ({ url }) => url,
      () => "Open it in a browser. It works once, within 10 minutes: whoever has it is this person."
    )
  })
).pipe(
  Command.withDescription(
    "Print a one-time link that signs a person in to the portal. The same name, role and account are the same person"
  )
)
