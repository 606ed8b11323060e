import { Args, Command, Options } from "@effect/cli"
import { Effect, Option, Redacted } from "effect"
import type { AccountView } from "../Collect/wallet.ts"
import { Mode } from "../Domain/Chain.ts"
import { challengeWallet, checkProof } from "../Payments/addresses/addressOperations.ts"
import { walletIdentity } from "../Settings/hdWallet.ts"
import { complain, print } from "./Output.ts"
import { commandOf } from "./operationCommand.ts"
import {
  common,
  fileOption,
  force,
  loadSettings,
  readInput,
  seedOptions,
  UsageError,
  walletAccount
} from "./options.ts"

/** Loaded only here. */
const views = Effect.promise(() => import("../Collect/wallet.ts"))
const derivation = Effect.promise(() => import("../Settings/hdWallet.ts"))

const printView = Effect.fnUntraced(function* (view: AccountView, json: boolean) {
  yield* print(json ? JSON.stringify(view) : view.xpub)
  if (json) return
  const rows = [...view.addresses, { ...view.sponsor, path: `${view.sponsor.path} (sponsor)` }]
  yield* complain(
    [
      `This is the extended public key of ${view.path}, for wallets.live or wallets.test. Keep it secret: it shows all payments.`,
      ...rows.map(({ address, path }) => `${address}  ${path}`)
    ].join("\n")
  )
})

const makeNew = Command.make(
  "new",
  {
    ...common,
    dice: Options.boolean("dice").pipe(
      Options.withDescription("Ask what your dice show, and mix it into the system's random numbers")
    ),
    keystore: fileOption("keystore", "Also write the seed into this file, encrypted with a password that is asked for"),
    account: walletAccount,
    force
  },
  Effect.fnUntraced(function* ({ account, dice, force, json, keystore }) {
    const { newWallet } = yield* views
    const { viewAccount } = yield* views
    const seed = yield* newWallet({ dice, force, keystore: Option.getOrUndefined(keystore) })
    yield* printView(yield* viewAccount(seed, account), json)
  })
).pipe(
  Command.withDescription(
    "Make a seed of 24 words, on a machine without a network: they are shown at the terminal, once, and three of them asked again"
  )
)

const xpub = Command.make(
  "xpub",
  { ...common, seed: seedOptions, account: walletAccount },
  Effect.fnUntraced(function* ({ account, json, seed }) {
    const { readAccount } = yield* views
    yield* printView(yield* readAccount(seed, account), json)
  })
).pipe(Command.withDescription("Print the extended public key of a seed's account, for the configuration of tilld"))

const prove = Command.make(
  "prove",
  {
    ...common,
    seed: seedOptions,
    challenge: Args.text({ name: "challenge" }).pipe(
      Args.withDescription("The word that tilld wallet challenge has printed")
    )
  },
  Effect.fnUntraced(function* ({ challenge, json, seed }) {
    const { proveWallet } = yield* views
    const proof = yield* proveWallet(seed, challenge)
    yield* print(json ? JSON.stringify({ proof }) : proof)
    if (!json) yield* complain("Take this to the server: tilld wallet check PROOF. It spends nothing.")
  })
).pipe(
  Command.withDescription(
    "Sign a challenge where the seed is: it shows that you hold the keys of all receiving addresses"
  )
)

const sponsor = Command.make(
  "sponsor",
  {
    ...common,
    mode: Options.choice("mode", Mode.literals).pipe(
      Options.withDescription("Take wallets.live or wallets.test of the configuration"),
      Options.optional
    ),
    xpub: fileOption("xpub", "Take the extended public key in this file instead, or on standard input with -")
  },
  Effect.fnUntraced(function* ({ json, mode, xpub, ...options }) {
    if (Option.isSome(mode) === Option.isSome(xpub)) {
      return yield* new UsageError({ message: "Give either --mode or --xpub: which wallet's sponsor to show" })
    }
    const configured = Option.isSome(mode) ? (yield* loadSettings(options)).wallets[mode.value] : undefined
    const text = Option.isSome(xpub) ? yield* readInput(xpub.value) : configured && Redacted.value(configured)
    if (text === undefined) return yield* new UsageError({ message: "The configuration has no wallet of this mode" })
    if (walletIdentity(text) === undefined) {
      return yield* new UsageError({
        message: "This is not the extended public key of an account: xpub… of m/44'/60'/n'"
      })
    }
    const { sponsorAddress } = yield* derivation
    const address = sponsorAddress(text)
    yield* print(json ? JSON.stringify({ address }) : address)
  })
).pipe(
  Command.withDescription("Print the address that pays for gas when the money is collected: send it the coin for that")
)

// Apart from the list below, whose type would make theirs any.
const challenge = commandOf(challengeWallet, { print: ({ challenge }) => challenge })

const check = commandOf(checkProof, {
  print: ({ address, day, wallet }) => `Noted: the seed of wallet ${wallet} signed on ${day}, by its address ${address}`
})

/** `tilld wallet`: the seed that owns the receiving addresses, away from the server. */
export const wallet = Command.make("wallet").pipe(
  Command.withDescription("The seed that owns the receiving addresses: make it, show what the server needs, prove it"),
  Command.withSubcommands([makeNew, xpub, sponsor, challenge, prove, check])
)
