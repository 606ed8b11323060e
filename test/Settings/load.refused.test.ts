import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Redacted } from "effect"
import { load } from "../../src/Settings.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testXpub } from "../lib/settings.ts"
import { loadText, masterXprv, masterXpub, phrase, privateKey, problemsOf, small } from "./loading.ts"

describe("a refused configuration", () => {
  const inData = `${small}[database]\npath = "/data/tilld.db"\n`
  const inFolder = "in the folder of the database"
  const taken = "is 8080, which is server.port too"
  const cases: ReadonlyArray<readonly [text: string, at: string, why: string]> = [
    [`${inData}mark_folder = "/data/marks"`, "database.mark_folder", inFolder],
    ...["/data/read.sock", "/data/tilld.db", "/data/tilld.db.sock", "/data/run/read.sock"].map(
      (socket) => [`${inData}[control]\nread_socket = "${socket}"`, "control.read_socket", inFolder] as const
    ),
    [`${small}[admin]\nport = 8080`, "admin.port", taken],
    [`${small}[admin]\nhost = "0.0.0.0"\nport = 8080`, "admin.port", taken],
    [small.replace("[wallets]", `[wallets]\nlive = "${testXpub}"`), "wallets.test", "wallets.live too"]
  ]
  liveTest("has what belongs elsewhere beside the database, or one port or wallet for two", function* () {
    for (const [text, place, why] of cases) {
      const { at } = yield* problemsOf(text)
      expect(Object.keys(at), text).toEqual([place])
      expect(at[place], text).toContain(why)
    }
    for (const fine of ['host = "127.0.0.2"\nport = 8080', "port = 8081"]) yield* loadText(`${small}[admin]\n${fine}`)
  })

  liveTest("gets all its problems at once, each with its place and its remedy", function* () {
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
dust_floor_usd = "-0.1"
[webhooks]
extra_ca_file = "/nowhere/ca.pem"
concurrency = "many"
[rates]
sources = ["kraken", "binance"]
currencies = ["CHF", "XAU"]
fixed = { ETH = 2500.5, USD = "1", MXN = "0" }
[quotes]
service_fee_bps = 0.5
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
    place("payments.dust_floor_usd", "decimal", "-0.1")
    place("webhooks.extra_ca_file", "cannot be read")
    place("webhooks.concurrency", "whole number", '"many"')
    place("rates.sources[1]", "kraken", '"binance"')
    place("rates.currencies[1]", 'one of "USD"', '"AUD"', '"SEK"; found "XAU"')
    place("rates.fixed.ETH", "quotes")
    place("quotes.service_fee_bps", "0 to 5000", "100 are 1 %", "found 0.5")
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
    // Nothing that is valid, such as the last proxy and the second RPC URL.
    expect(Object.keys(at)).toHaveLength(44)
    expect(message).toContain("44 problems")
  })

  liveTest("is empty or a missing file", function* () {
    const { at } = yield* problemsOf("")
    expect(Object.keys(at)).toEqual(["server.public_url", "chains"])
    const none = yield* Effect.flip(Effect.asVoid(load({ path: "/nowhere/tilld.toml", env: {} })))
    expect(none.message).toMatch(/no file \/nowhere\/tilld.toml.*example.*--config/s)
  })

  liveTest("is malformed TOML: the error has line and column, but not the line itself", function* () {
    const { message } = yield* problemsOf('[server]\nhost = "a"\nport = "hunter2\n', { TILLD_NOT_A_KEY: "x" })
    expect(message).toMatch(/line 3, column \d+/)
    expect(message).toContain("TILLD_NOT_A_KEY")
    expect(message).not.toContain("hunter2")
  })

  liveTest("names one node twice, by whatever names: a second voice that is the first one's", function* () {
    const loadWith = (...urls: ReadonlyArray<string>) =>
      small.replace(/rpc_urls = \[.*\]/, `rpc_urls = ${JSON.stringify(urls)}`)
    const one = "https://rpc.example.com/v1/key"
    const twice = [
      [one, one],
      [one, `${one}/`],
      [one, "https://RPC.Example.com/v1/key"],
      [one, "https://rpc.example.com.:443/v1/key"],
      [one, "https://user:hunter2@rpc.example.com/v1/key"],
      [one, "http://rpc.example.com/v1/key"],
      [one, `${one}#2`],
      ["http://localhost:8545", "http://127.0.0.1:8545/"],
      ["http://[::1]:8545", "http://127.1.2.3:8545"],
      ["http://127.0.0.1:8545", "http://0.0.0.0:8545"],
      ["http://127.0.0.1:8545", "http://[::]:8545"],
      ["http://127.0.0.1:8545", "http://[::ffff:127.0.0.1]:8545"],
      ["http://127.0.0.1:8545", "http://rpc.localhost:8545"],
      ["http://127.0.0.1:8545", "http://ip6-localhost.:8545"],
      ["http://192.0.2.1:8545", "http://[::ffff:192.0.2.1]:8545"],
      [one, "https://rpc.example.com//v1/./key"],
      [one, "https://rpc.example.com/v1/%6bey"],
      [one, `${one}?`],
      [`${one}?a=1&b=%32`, `${one}?b=2&a=1`],
      ["http://node:8545", "https://other.example.com", "http://NODE:8545//"]
    ]
    for (const urls of twice) {
      const { at, message } = yield* problemsOf(loadWith(...urls))
      expect(at["chains.base.test.rpc_urls"], urls.join(" ")).toContain("twice")
      expect(message).not.toContain("hunter2")
    }
    const apart = [
      [one, "https://rpc.example.com/v1/other"],
      [one, "https://rpc.example.com/v1/KEY"],
      [one, `${one}?chain=base`],
      [`${one}?key=1`, `${one}?key=2`],
      [`${one}?key=a&b=c`, `${one}?key=a%26b=c`],
      ["http://localhost:8545", "http://localhost.example.com:8545"],
      ["http://192.0.2.1:8545", "http://192.0.2.2:8545"],
      ["http://localhost:8545", "http://127.0.0.1:8546"],
      [one, "https://rpc.example.net/v1/key"]
    ]
    for (const urls of apart) yield* loadText(loadWith(...urls))
  })

  liveTest("has prototype keys, or dates and tables instead of values", function* () {
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

  it.effect.each(hidden)("%s is refused wherever it is, and not shown", ([, secret, what]) =>
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

  liveTest("are refused also in a comment, in a file that does not parse, and as a key", function* () {
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

  liveTest("are shown by no other problem, nor by the settings themselves", function* () {
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
    const settings = yield* loadText(small)
    expect(JSON.stringify(settings)).not.toMatch(/xpub|0123456789abcdef/)
    expect(String(Exit.succeed(settings))).not.toMatch(/xpub6|0123456789abcdef/)
  })

  liveTest("64 hex digits in the path of an RPC URL are a provider's API key, not a private key", function* () {
    const url = `https://rpc.example.com/base/${privateKey}`
    const settings = yield* loadText(small.replace("https://rpc.example.com/v1/0123456789abcdef", url))
    expect(settings.chains[0]?.rpcUrls.map(Redacted.value)).toEqual([url])
  })
})
