import { readFileSync, writeFileSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Exit, Redacted } from "effect"
import { localTokens } from "../../src/Sandbox/Contracts.ts"
import { load, type SettingsInvalid } from "../../src/Settings.ts"
import { testXpub } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"

const liveXpub =
  "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP"
// BIP-32's first test vector: the master keys, private and public.
const masterXprv =
  "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi"
const masterXpub =
  "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8"
const privateKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
const phrase = "test test test test test test test test test test test junk"

const small = `
[server]
public_url = "https://pay.example.com/"
[wallets]
test = "${testXpub}"
[chains.base.test]
rpc_urls = ["https://rpc.example.com/v1/0123456789abcdef"]
`

const loadText = (text: string, env: Readonly<Record<string, string>> = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const path = join(yield* temporaryFolder, "tilld.toml")
      yield* Effect.sync(() => writeFileSync(path, text))
      return yield* load({ path, env })
    })
  )

/** What is said of each place, and the whole message. */
const problemsOf = (text: string, env: Readonly<Record<string, string>> = {}) =>
  Effect.map(Effect.flip(Effect.asVoid(loadText(text, env))), (error: SettingsInvalid) => ({
    at: Object.fromEntries(error.problems.map((problem) => [problem.at, problem.message])),
    message: error.message
  }))

describe("what is given", () => {
  it.effect("a small file stands on the defaults and the public network's preset", () =>
    Effect.gen(function* () {
      const { settings, unread } = yield* loadText(small)
      expect(settings.server).toEqual({
        host: "127.0.0.1",
        port: 8080,
        publicUrl: "https://pay.example.com",
        trustedProxies: []
      })
      expect(settings.admin).toBeUndefined()
      expect(Duration.toSeconds(settings.payments.settleGrace)).toBe(60)
      const [base] = settings.chains
      expect(base).toMatchObject({
        chain: "base",
        mode: "test",
        chainId: 84532,
        confirmations: 10,
        startBlock: "latest"
      })
      expect(base?.tokens).toEqual([
        { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6 }
      ])
      expect(base?.rpcUrls.map(Redacted.value)).toEqual(["https://rpc.example.com/v1/0123456789abcdef"])
      expect(unread).toEqual([])
    })
  )

  it.effect("wrong tokens are known on a public network, and not on another of the same name", () =>
    Effect.gen(function* () {
      const chain = (id: string) =>
        small
          .replaceAll("test", "live")
          .replace(testXpub.replaceAll("test", "live"), liveXpub)
          .replace(
            "[chains.base",
            `
[chains.optimism.live]
rpc_urls = ["https://rpc.example.com"]
${id}
[chains.base`
          )
      const known = yield* loadText(chain(""))
      const optimism = known.settings.chains.find(({ chain }) => chain === "optimism")
      expect(optimism?.wrongTokens).toContainEqual({
        name: "USDC.e",
        address: "0x7f5c764cbc14f9669b88837ca1490cca17c31607"
      })
      const other = yield* loadText(chain('chain_id = 4242\nconfirmations = 1\npoll_interval = "1s"'))
      expect(other.settings.chains.find(({ chain }) => chain === "optimism")).toMatchObject({
        chainId: 4242,
        tokens: [],
        wrongTokens: []
      })
    })
  )

  it.effect("a file can correct a preset key by key", () =>
    Effect.gen(function* () {
      const { settings } = yield* loadText(`${small}confirmations = 2\npoll_interval = "500ms"\nstart_block = 7\n`)
      expect(settings.chains[0]).toMatchObject({ chainId: 84532, confirmations: 2, startBlock: 7 })
      expect(settings.chains[0]?.pollInterval).toEqual(Duration.millis(500))
    })
  )

  it.effect("the environment wins over the file, in the type of each key", () =>
    Effect.gen(function* () {
      const { settings } = yield* loadText(small, {
        TILLD_SERVER__PORT: "9000",
        TILLD_LOG__FORMAT: "pretty",
        TILLD_PORTAL__ENABLED: "false",
        TILLD_PAYMENTS__LATE_WINDOW: "7d",
        TILLD_WEBHOOKS__ALLOW_TARGETS: '["127.0.0.1/32", "::1/128"]',
        TILLD_RATES__FIXED__ETH: "2500",
        TILLD_CHAINS__BASE__TEST__CHAIN_ID: "313375",
        TILLD_CHAINS__BASE__TEST__CONFIRMATIONS: "3",
        TILLD_CHAINS__BASE__TEST__POLL_INTERVAL: "500 millis",
        TILLD_CHAINS__BASE__TEST__START_BLOCK: "latest",
        TILLD_CHAINS__BASE__TEST__TOKENS__USDC__ADDRESS: "0x5fd84259d66Cd46123540766Be93DFE6D43130D7",
        TILLD_CHAINS__BASE__TEST__TOKENS__USDC__DECIMALS: "6",
        TILLD_CONFIG: "elsewhere",
        TILLD_MASTER_KEY: "not looked at here",
        TILLD_API_KEY: "not ours",
        HOME: "/root"
      })
      expect(settings.server.port).toBe(9000)
      expect(settings.log.format).toBe("pretty")
      expect(settings.portal.enabled).toBe(false)
      expect(Duration.toDays(settings.payments.lateWindow)).toBe(7)
      expect(settings.webhooks.allowTargets).toEqual(["127.0.0.1/32", "::1/128"])
      expect(settings.rates.fixed).toEqual({ ETH: "2500" })
      expect(settings.chains[0]).toMatchObject({ chainId: 313375, confirmations: 3, startBlock: "latest" })
      expect(settings.chains[0]?.tokens[0]?.address).toBe("0x5fd84259d66cd46123540766be93dfe6d43130d7")
    })
  )

  it.effect("price sources are asked by https, or by http on this machine", () =>
    Effect.gen(function* () {
      const rates = (url: string) => loadText(`${small}[rates]\ncoinbase_url = "${url}"\n`)
      for (const url of [
        "https://prices.example.com/coinbase/",
        "http://127.0.0.1:9000",
        "http://[::1]",
        "http://localhost"
      ]) {
        expect((yield* rates(url)).settings.rates.coinbaseUrl).toBe(url.replace(/\/$/, ""))
      }
      for (const url of [
        "http://prices.example.com",
        "http://127.example.com",
        "https://me:pw@example.com",
        "https://x.org?a=b"
      ]) {
        const { problems } = yield* Effect.flip(rates(url))
        expect(problems.map(({ at }) => at)).toEqual(["rates.coinbase_url"])
      }
      expect((yield* loadText(small)).settings.rates).toMatchObject({
        coinbaseUrl: "https://api.coinbase.com",
        krakenUrl: "https://api.kraken.com"
      })
    })
  )

  it.effect("names what was given and nothing reads yet", () =>
    Effect.gen(function* () {
      const { unread } = yield* loadText(`${small}balance_interval = "20s"\n[admin]\n[limits]\nper_minute = 5\n`, {
        TILLD_ALERTS__URL: "https://alerts.example.com"
      })
      expect(unread).toEqual(["alerts"])
    })
  )
})

describe("a relative path", () => {
  const files = `${small}[database]\npath = "data/tilld.db"\n[webhooks]\nextra_ca_file = "ca.pem"\n`

  it.scoped("in the file is one from the file's folder", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      writeFileSync(join(folder, "tilld.toml"), files)
      const missing = yield* Effect.flip(load({ path: join(folder, "tilld.toml"), env: {} }))
      expect(missing.message).toContain(
        `webhooks.extra_ca_file: names a file that cannot be read, seen from ${folder};`
      )
      writeFileSync(join(folder, "ca.pem"), "")
      for (const path of [join(folder, "tilld.toml"), relative("", join(folder, "tilld.toml"))]) {
        const { settings } = yield* load({ path, env: {} })
        expect(settings.database.path).toBe(join(folder, "data/tilld.db"))
        expect(settings.webhooks.extraCaFile).toBe(join(folder, "ca.pem"))
      }
    })
  )

  it.scoped("in the environment is one from the working folder", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      writeFileSync(join(folder, "tilld.toml"), files)
      const env = { TILLD_DATABASE__PATH: "data/other.db", TILLD_WEBHOOKS__EXTRA_CA_FILE: "package.json" }
      const { settings } = yield* load({ path: join(folder, "tilld.toml"), env })
      expect(settings.database.path).toBe(resolve("data/other.db"))
      expect(settings.webhooks.extraCaFile).toBe(resolve("package.json"))
    })
  )

  it.effect("is none where there is no file to name", () =>
    Effect.gen(function* () {
      const { settings } = yield* loadText(small)
      expect([settings.database.path, settings.webhooks.extraCaFile]).toEqual(["/var/lib/tilld/tilld.db", ""])
    })
  )
})

describe("the files that ship", () => {
  it.effect("sandbox.toml decodes, and has the addresses that the local chains give their tokens", () =>
    Effect.gen(function* () {
      const { settings, unread } = yield* load({ path: "config/sandbox.toml", env: {} })
      expect(settings.database.path).toBe(resolve(".sandbox/tilld.db"))
      expect(settings.chains.map(({ chain, mode }) => `${chain}.${mode}`)).toEqual(
        ["ethereum", "polygon", "arbitrum", "optimism", "base"].map((chain) => `${chain}.test`)
      )
      for (const chain of settings.chains) {
        for (const token of chain.tokens) {
          expect(token).toEqual({
            symbol: token.symbol,
            address: localTokens[token.symbol].address.toLowerCase(),
            decimals: localTokens[token.symbol].decimals
          })
        }
      }
      expect(new Set(settings.chains.map(({ chainId }) => chainId)).size).toBe(5)
      expect(unread).toEqual([])
    })
  )

  it.effect("tilld.example.toml names every key, and decodes once the wallets are given", () =>
    Effect.gen(function* () {
      const example = readFileSync("config/tilld.example.toml", "utf8")
      const { at } = yield* problemsOf(example)
      expect(Object.keys(at)).toEqual(["wallets.live", "wallets.test"])
      const env = { TILLD_WALLETS__LIVE: liveXpub, TILLD_WALLETS__TEST: testXpub }
      const { settings } = yield* loadText(example, env)
      const bare = yield* loadText(
        `
[server]
public_url = "https://pay.example.com"
[admin]
[chains.ethereum.live]
rpc_urls = ["https://ethereum-rpc.example.com", "https://ethereum-rpc.example.net"]
[chains.ethereum.test]
rpc_urls = ["https://sepolia-rpc.example.com"]
`,
        env
      )
      // All but the two that it shows by example are the defaults.
      expect(settings.rates.fixed).not.toEqual({})
      expect(settings.chains[0]?.policies).toHaveLength(1)
      const plain = (all: typeof settings) => ({
        ...all,
        rates: { ...all.rates, fixed: {} },
        chains: all.chains.map((chain) => ({ ...chain, policies: [], rpcUrls: chain.rpcUrls.map(Redacted.value) })),
        wallets: Object.values(all.wallets).map((key) => key && Redacted.value(key))
      })
      expect(plain(settings)).toEqual(plain(bare.settings))
    })
  )
})

describe("what is refused", () => {
  it.effect("every problem at once, each with its place and what to do", () =>
    Effect.gen(function* () {
      const { at, message } = yield* problemsOf(
        `
sever = 1
[server]
prt = 80
port = 70000
public_url = "ftp://pay.example.com"
trusted_proxies = ["10.0.0.1", "300.1.1.1/8", "127.1/8", "10.0.0.0/8"]
[database]
path = ":memory:"
[wallets]
live = "${masterXpub}"
[payments]
settle_grace = "-5 seconds"
late_window = 30
tolerance_bps = 10000
[webhooks]
extra_ca_file = "/nowhere/ca.pem"
concurrency = "many"
[rates]
sources = ["kraken", "binance"]
fixed = { ETH = 2500.5, USD = "1", MXN = "0" }
[log]
level = "verbose"
[chains.solana.live]
[chains.ethereum.test]
rpc_urls = []
chain_id = 1
[chains.arbitrum.live]
rpc_urls = ["wss://rpc.example.com", "https://rpc.example.com"]
[chains.arbitrum.live.tokens.ETH]
address = "0x"
[chains.arbitrum.live.tokens.DAI]
address = "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000dA1"
[chains.base.live]
rpc_urls = ["https://rpc.example.com"]
[chains.base.live.tokens.WBTC]
address = "0xda10009cbd5d07dd0cecc66161fc93d7c9000da1"
decimals = 40
[chains.polygon.live]
rpc_urls = "https://rpc.example.com"
chain_id = 4242
policy = [{ above_usd = "1", require = "soon" }, 5]
[chains.polygon.live.tokens]
USDC = { address = "0x5fd84259d66cd46123540766be93dfe6d43130d7" }
DAI = { address = "0x5fd84259d66Cd46123540766Be93DFE6D43130D7", decimals = 18 }
`,
        { TILLD_SERVER__POTR: "1", TILLD_LOG__FORMAT: "xml", TILLD_ADMIN__PORT: "99999", TILLD_LIMITS__PER_HOUR: "" }
      )
      const place = (path: string, ...words: ReadonlyArray<string>) =>
        expect(at[path]?.toLowerCase(), path).toMatch(new RegExp(words.join(".*").toLowerCase()))
      place("TILLD_SERVER__POTR", "TILLD_SERVER__PORT")
      place("sever", 'did you mean "server"')
      place("server.prt", 'did you mean "port"')
      place("server.port", "0 to 65535", "found 70000")
      place("server.public_url", "http or https")
      place("server.trusted_proxies[0]", "CIDR")
      place("server.trusted_proxies[1]", "CIDR")
      place("server.trusted_proxies[2]", "CIDR")
      place("database.path", "file")
      place("wallets.live", "extended public key", "depth 3")
      place("wallets.test", "missing", "chains.ethereum.test")
      place("payments.settle_grace", "duration", "-5 seconds")
      place("payments.late_window", "duration", "found 30")
      place("payments.tolerance_bps", "0 to 5000")
      place("webhooks.extra_ca_file", "cannot be read")
      place("webhooks.concurrency", "whole number", '"many"')
      place("rates.sources[1]", "kraken", '"binance"')
      place("rates.fixed.ETH", "quotes")
      place("rates.fixed.MXN", "above 0")
      place("rates.fixed.USD", "not a key")
      place("log.level", "debug", "verbose")
      place("TILLD_LOG__FORMAT", "json", "xml")
      place("TILLD_ADMIN__PORT", "65535")
      place("TILLD_LIMITS__PER_HOUR", "whole number")
      place("chains.solana", "ethereum, polygon")
      place("chains.ethereum.test.rpc_urls", "at least one")
      place("chains.ethereum.test.chain_id", "chains.ethereum.live")
      place("chains.ethereum.test.confirmations", "missing", "presets")
      place("chains.arbitrum.live.rpc_urls[0]", "http")
      place("chains.arbitrum.live.tokens.ETH", "own coin", "remove")
      place("chains.arbitrum.live.tokens.DAI.address", "checksum")
      place("chains.base.live.tokens.WBTC", "not taken on base", "ETH, USDC")
      place("chains.base.live.tokens.WBTC.decimals", "0 to 36")
      place("chains.polygon.live.rpc_urls", "array")
      place("chains.polygon.live.poll_interval", "missing")
      place("chains.polygon.live.tokens.USDC.decimals", "missing")
      place("chains.polygon.live.tokens.DAI.address", "contract of USDC")
      place("chains.polygon.live.policy[0].require", "finalized")
      place("chains.polygon.live.policy[1]", "section")
      // And nothing that is right, such as the last proxy and the second RPC.
      expect(Object.keys(at)).toHaveLength(41)
      expect(message).toContain("41 problems")
    })
  )

  it.effect("nothing at all, and a file that is not there", () =>
    Effect.gen(function* () {
      const { at } = yield* problemsOf("")
      expect(Object.keys(at)).toEqual(["server.public_url", "chains"])
      const none = yield* Effect.flip(Effect.asVoid(load({ path: "/nowhere/tilld.toml", env: {} })))
      expect(none.message).toMatch(/no file \/nowhere\/tilld.toml.*example.*--config/s)
    })
  )

  it.effect("malformed TOML, with its line and column and without the line itself", () =>
    Effect.gen(function* () {
      const { message } = yield* problemsOf('[server]\nhost = "a"\nport = "hunter2\n', { TILLD_NOT_A_KEY: "x" })
      expect(message).toMatch(/line 3, column \d+/)
      expect(message).toContain("TILLD_NOT_A_KEY")
      expect(message).not.toContain("hunter2")
    })
  )

  it.effect("one wallet for both modes", () =>
    Effect.gen(function* () {
      const { at } = yield* problemsOf(small.replace("[wallets]", `[wallets]\nlive = "${testXpub}"`))
      expect(Object.keys(at)).toEqual(["wallets.test"])
      expect(at["wallets.test"]).toContain("wallets.live too")
    })
  )

  it.effect("keys of a prototype, dates and tables where values belong", () =>
    Effect.gen(function* () {
      const { at } = yield* problemsOf(
        `${small}__proto__ = 1\nconstructor = 2\n[log]\nlevel = 1979-05-27\nformat = { a = 1 }\n`
      )
      expect(Object.keys(at).sort()).toEqual([
        "chains.base.test.__proto__",
        "chains.base.test.constructor",
        "log.format",
        "log.level"
      ])
    })
  )
})

describe("secrets", () => {
  const hidden: ReadonlyArray<readonly [what: string, text: string, place: string]> = [
    ["a private key", `0x${privateKey}`, "private key"],
    ["a private key without 0x", privateKey.toUpperCase(), "private key"],
    ["an extended private key", masterXprv, "extended private key"],
    ["a recovery phrase", phrase, "recovery phrase"],
    [
      "a phrase of another language",
      "ábaco abdomen abeja abierto abogado abono aborto abrazo abrir abuelo abuso acabar",
      "phrase"
    ]
  ]

  it.effect.each(hidden)("%s is refused wherever it stands, and not shown", ([, secret, what]) =>
    Effect.gen(function* () {
      const texts = [
        small.replace(testXpub, secret),
        small.replace("https://pay.example.com/", secret),
        `${small}[log]\nlevel = "${secret}"\n`,
        `${small}[nonsense]\n"a b" = ["x", "${secret}"]\n`
      ]
      for (const text of texts) {
        const { at, message } = yield* problemsOf(text)
        expect(Object.values(at).filter((problem) => problem.includes(what))).toHaveLength(1)
        expect(message).not.toContain(secret)
        expect(message).not.toContain(secret.slice(4, 40))
      }
      const byEnvironment = yield* problemsOf(small, { TILLD_WALLETS__LIVE: secret })
      expect(byEnvironment.at["TILLD_WALLETS__LIVE"]).toContain(what)
      expect(byEnvironment.message).not.toContain(secret)
    })
  )

  it.effect("also in a comment, in a file that does not parse, and as a key", () =>
    Effect.gen(function* () {
      const texts = [
        `${small}# ${masterXprv}`,
        `${small}# old: ${privateKey}`,
        `${small}# 1. ${phrase.split(" ").join("\n# 2. ")}`,
        `[server\n${masterXprv}`,
        `${small}${privateKey} = 1`
      ]
      for (const text of texts) {
        const { message } = yield* problemsOf(text)
        expect(message).toMatch(/line \d+: holds what looks like/)
        for (const secret of [masterXprv, privateKey, phrase]) expect(message).not.toContain(secret)
      }
    })
  )

  it.effect("are not shown by any other problem, nor by the settings themselves", () =>
    Effect.gen(function* () {
      const { message } = yield* problemsOf(`
[server]
public_url = "https://user:hunter2@pay.example.com"
host = 5
[wallets]
test = "${testXpub.slice(0, -1)}X"
[alerts]
url = "gopher://hunter2"
[chains.base.test]
rpc_urls = ["ws://rpc.example.com/hunter2", "hunter2"]
[chains.base.live]
rpc_urls = "https://x.io/hunter2"
`)
      expect(message).toContain("8 problems")
      expect(message).not.toContain("hunter2")
      expect(message).not.toContain(testXpub.slice(0, 30))
      const { settings } = yield* loadText(small)
      expect(JSON.stringify(settings)).not.toMatch(/xpub|0123456789abcdef/)
      expect(String(Exit.succeed(settings))).not.toMatch(/xpub6|0123456789abcdef/)
    })
  )

  it.effect("64 hex digits in the path of an RPC URL are a provider's key, and no private one", () =>
    Effect.gen(function* () {
      const url = `https://rpc.example.com/base/${privateKey}`
      const { settings } = yield* loadText(small.replace("https://rpc.example.com/v1/0123456789abcdef", url))
      expect(settings.chains[0]?.rpcUrls.map(Redacted.value)).toEqual([url])
    })
  )
})
