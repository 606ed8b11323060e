import { Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { refuse } from "./options.ts"

const optional = {
  fd: Options.integer("seed-fd").pipe(
    Options.withPseudoName("N"),
    Options.withDescription(
      "Read the seed's words from this file descriptor, and their passphrase from its second line; with --keystore, its password instead of the words. Otherwise it is asked for at the terminal"
    ),
    Options.mapEffect((fd) =>
      fd >= 0 && fd < 2 ** 31 ? Effect.succeed(fd) : refuse("--seed-fd must be 0 to 2147483647")
    ),
    Options.optional
  ),
  keystore: Options.text("keystore").pipe(
    Options.withPseudoName("FILE"),
    Options.withDescription("A keystore (version 3) with the entropy of the seed's words"),
    Options.optional
  )
}

/** Where a command gets the seed: never from arguments or the environment, which others on the machine can read. */
export const seedOptions = Options.map(Options.all(optional), ({ fd, keystore }) => ({
  fd: Option.getOrUndefined(fd),
  keystore: Option.getOrUndefined(keystore)
}))

/** A number of an account m/44'/60'/n'. */
export const walletAccount = Options.integer("account").pipe(
  Options.withPseudoName("N"),
  Options.withDescription("The n of m/44'/60'/n'; otherwise 0"),
  Options.mapEffect((n) => (n >= 0 && n < 2 ** 31 ? Effect.succeed(n) : refuse("--account must be 0 to 2147483647"))),
  Options.withDefault(0)
)
