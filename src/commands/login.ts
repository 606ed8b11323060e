import { Effect } from "effect"
import { nameLength } from "../Auth/inputFields.ts"
import { makeLoginLink } from "../Auth/loginOperation.ts"
import { Invocation } from "../Control/Invocation.ts"
import { cut } from "../Domain/wellFormed.ts"
import { commandOf } from "./operationCommand.ts"

/** The user of this machine as a name: printable, and not too long. */
const nameOf = (user: string) => cut(user.replace(/\p{C}/gu, ""), nameLength) || "somebody"

/** `tilld login`: prints a one-time link into the portal. */
export const loginCommand = commandOf(
  makeLoginLink,
  {
    print: ({ url }) => url,
    explain: () => "Open it in a browser. It works once, within 10 minutes: whoever has it is this person."
  },
  (json) => Effect.map(Invocation, ({ user }) => ({ name: nameOf(user), ...json }))
)
