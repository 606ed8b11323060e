import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { load, type SettingsInvalid } from "../../src/Settings.ts"
import { testXpub } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"

// BIP-32's first test vector: the master keys, private and public.
export const masterXprv =
  "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi"

export const masterXpub =
  "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8"

export const privateKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
export const phrase = "test test test test test test test test test test test junk"

export const small = `
[server]
public_url = "https://pay.example.com/"
[wallets]
test = "${testXpub}"
[chains.base.test]
rpc_urls = ["https://rpc.example.com/v1/0123456789abcdef"]
`

export const loadText = (text: string, env: Readonly<Record<string, string>> = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "tilld.toml")
      yield* Effect.sync(() => writeFileSync(path, text))
      return yield* load({ path, env })
    })
  )

/** The problem at each place, and the whole message. */
export const problemsOf = (text: string, env: Readonly<Record<string, string>> = {}) =>
  Effect.map(Effect.flip(Effect.asVoid(loadText(text, env))), (error: SettingsInvalid) => ({
    at: Object.fromEntries(error.problems.map((problem) => [problem.at, problem.message])),
    message: error.message
  }))
