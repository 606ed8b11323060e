import { readFileSync, writeFileSync } from "node:fs"
import { basename, join, relative, resolve } from "node:path"
import { rootCertificates } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import { modes } from "../../src/Domain/Chain.ts"
import { makeAuthority } from "../../src/Sandbox/Authority.ts"
import { localTokens } from "../../src/Sandbox/LocalChain.ts"
import { markFolderOf } from "../../src/Settings/indexMarkFolder.ts"
import { knownBlocks } from "../../src/Settings/knownBlocks.ts"
import { presets } from "../../src/Settings/publicNetworks.ts"
import { load, takenBy } from "../../src/Settings.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { liveXpub, testXpub } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"
import { loadText, problemsOf, small } from "./loading.ts"

liveTest("a reload takes all but what stays open meanwhile", function* () {
  const stays = { TILLD_SERVER__PORT: "9", TILLD_SERVER__TRUSTED_PROXIES: '["10.0.0.0/8"]', TILLD_ADMIN__PORT: "8" }
  const current = yield* loadText(small)
  const changed = yield* loadText(small, { ...stays, TILLD_DATABASE__PATH: "/other.db", TILLD_LOG__LEVEL: "debug" })
  const { again: _, ...taken } = takenBy(current, changed)
  const { again, values, ...was } = current
  expect(taken).toEqual({
    ...was,
    checkout: changed.checkout,
    log: changed.log,
    values: { ...values, "log.level": '"debug"' }
  })
})

describe("a configuration", () => {
  liveTest("of a few lines gets the defaults and the public network's preset", function* () {
    const settings = yield* loadText(small)
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
      { symbol: "USDC", address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", decimals: 6, accepting: true }
    ])
    expect(base?.rpcUrls.map(Redacted.value)).toEqual(["https://rpc.example.com/v1/0123456789abcdef"])
  })

  liveTest("has known wrong tokens on a public network, but not on another network of that name", function* () {
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
    const optimism = known.chains.find(({ chain }) => chain === "optimism")
    expect(optimism?.wrongTokens).toContainEqual({
      name: "USDC.e",
      address: "0x7f5c764cbc14f9669b88837ca1490cca17c31607"
    })
    const other = yield* loadText(chain('chain_id = 4242\nconfirmations = 1\npoll_interval = "1s"'))
    expect(other.chains.find(({ chain }) => chain === "optimism")).toMatchObject({
      chainId: 4242,
      tokens: [],
      wrongTokens: []
    })
  })

  liveTest("has the known blocks of a public network, but not for another network of that name", function* () {
    const genesis = { number: 0, hash: "0x0dcc9e089e30b90ddfc55be9a37dd15bc551aeee999d2e2b51414c54eaf934e4" }
    expect((yield* loadText(small)).chains[0]?.knownBlocks).toEqual([genesis])
    const own = yield* loadText(`${small}chain_id = 4242\nconfirmations = 1\npoll_interval = "1s"\n`)
    expect(own.chains[0]).toMatchObject({ chainId: 4242, knownBlocks: [] })
    for (const mode of modes) {
      for (const { chainId } of Object.values(presets[mode])) {
        const known = knownBlocks[chainId] ?? []
        expect(known[0]?.number).toBe(0)
        for (const { hash } of known) expect(hash).toMatch(/^0x[0-9a-f]{64}$/)
      }
    }
  })

  liveTest("is overridden by the environment, in the type of each key", function* () {
    const settings = yield* loadText(small, {
      TILLD_SERVER__PORT: "9000",
      TILLD_LOG__FORMAT: "pretty",
      TILLD_PORTAL__ENABLED: "false",
      TILLD_PAYMENTS__LATE_WINDOW: "7d",
      TILLD_WEBHOOKS__ALLOW_TARGETS: '["127.0.0.1/32", "::1/128"]',
      TILLD_RATES__FIXED__ETH: "2500",
      TILLD_CHAINS__BASE__TEST__CHAIN_ID: "313375",
      TILLD_CHAINS__BASE__TEST__CONFIRMATIONS: "3",
      TILLD_CHAINS__BASE__TEST__POLL_INTERVAL: "500 millis",
      TILLD_CHAINS__BASE__TEST__START_BLOCK: "7",
      TILLD_CHAINS__BASE__TEST__TOKENS__USDC__ADDRESS: "0x5fd84259d66Cd46123540766Be93DFE6D43130D7",
      TILLD_CHAINS__BASE__TEST__TOKENS__USDC__DECIMALS: "6",
      TILLD_CONFIG: "elsewhere",
      TILLD_MASTER_KEY: "not looked at here",
      TILLD_API_KEY: "not ours",
      TILLD_RATES__CURRENCIES: '["CHF", "EUR"]',
      HOME: "/root"
    })
    expect(settings.rates.currencies).toEqual(["USD", "EUR", "GBP", "MXN", "CHF"])
    expect(settings.server.port).toBe(9000)
    expect(settings.log.format).toBe("pretty")
    expect(settings.portal.enabled).toBe(false)
    expect(Duration.toDays(settings.payments.lateWindow)).toBe(7)
    expect(settings.webhooks.allowTargets).toEqual(["127.0.0.1/32", "::1/128"])
    expect(settings.rates.fixed).toEqual({ ETH: "2500" })
    expect(settings.chains[0]).toMatchObject({ chainId: 313375, confirmations: 3, startBlock: 7 })
    expect(settings.chains[0]?.pollInterval).toEqual(Duration.millis(500))
    expect(settings.chains[0]?.tokens[0]?.address).toBe("0x5fd84259d66cd46123540766be93dfe6d43130d7")
  })

  liveTest("has price sources with https, or with http on this machine", function* () {
    const rates = (url: string) => loadText(`${small}[rates]\ncoinbase_url = "${url}"\n`)
    const fine = ["https://prices.example.com/coinbase/", "http://127.0.0.1:9000", "http://[::1]", "http://localhost"]
    for (const url of fine) {
      expect((yield* rates(url)).rates.coinbaseUrl).toBe(url.replace(/\/$/, ""))
    }
    const plain = ["http://prices.example.com", "http://127.example.com"]
    for (const url of [...plain, "https://me:pw@example.com", "https://x.org?a=b"]) {
      const { problems } = yield* Effect.flip(rates(url))
      expect(problems.map(({ at }) => at)).toEqual(["rates.coinbase_url"])
    }
    expect((yield* loadText(small)).rates).toMatchObject({
      coinbaseUrl: "https://api.coinbase.com",
      krakenUrl: "https://api.kraken.com"
    })
  })
})

liveTest("a CA file without a certificate of an authority is refused", function* () {
  const ca = join(yield* temporaryFolder, "ca.pem")
  const text = `${small}[webhooks]\nextra_ca_file = "${ca}"\n`
  const { certificate, issue } = yield* makeAuthority
  const server = (yield* issue(["shop.example"])).certificate
  for (const [pem, what] of [
    ["not a certificate", "without a certificate in PEM"],
    ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "that cannot be decoded"],
    [`${certificate}\n${server}`, "which is no authority"]
  ] as const) {
    writeFileSync(ca, pem)
    expect((yield* Effect.flip(loadText(text))).message).toContain(`webhooks.extra_ca_file: names a file`)
    expect((yield* Effect.flip(loadText(text))).message).toContain(what)
  }
  writeFileSync(ca, certificate)
  expect((yield* loadText(text)).webhooks.extraCaFile).toBe(ca)
})

describe("a relative path", () => {
  const files = `${small}[database]\npath = "data/tilld.db"\n[webhooks]\nextra_ca_file = "ca.pem"\n[control]\nread_socket = "run/read.sock"\n`

  liveTest("in the file is relative to the file's folder", function* () {
    const folder = yield* temporaryFolder
    writeFileSync(join(folder, "tilld.toml"), files)
    const missing = yield* Effect.flip(load({ path: join(folder, "tilld.toml"), env: {} }))
    expect(missing.message).toContain(`webhooks.extra_ca_file: names a file that cannot be read, seen from ${folder};`)
    writeFileSync(join(folder, "ca.pem"), rootCertificates[0] ?? "")
    for (const path of [join(folder, "tilld.toml"), relative("", join(folder, "tilld.toml"))]) {
      const settings = yield* load({ path, env: {} })
      expect(settings.database.path).toBe(join(folder, "data/tilld.db"))
      expect(settings.webhooks.extraCaFile).toBe(join(folder, "ca.pem"))
      expect(settings.control.readSocket).toBe(join(folder, "run/read.sock"))
    }
  })

  liveTest("in the environment is relative to the working folder", function* () {
    const folder = yield* temporaryFolder
    writeFileSync(join(folder, "tilld.toml"), files)
    writeFileSync(join(folder, "other.pem"), rootCertificates[0] ?? "")
    const ca = relative("", join(folder, "other.pem"))
    const env = { TILLD_DATABASE__PATH: "data/other.db", TILLD_WEBHOOKS__EXTRA_CA_FILE: ca }
    const settings = yield* load({ path: join(folder, "tilld.toml"), env })
    expect(settings.database.path).toBe(resolve("data/other.db"))
    expect(settings.webhooks.extraCaFile).toBe(join(folder, "other.pem"))
  })

  liveTest("is not made from an empty value or a default", function* () {
    const settings = yield* loadText(small)
    expect([settings.database.path, settings.webhooks.extraCaFile]).toEqual(["/var/lib/tilld/tilld.db", ""])
    expect(settings.control.readSocket).toBe("")
    const given = yield* loadText(small, { CACHE_DIRECTORY: "/var/cache/tilld" })
    expect(given.database.markFolder).toBe("/var/cache/tilld")
  })
})

describe("the shipped configuration files", () => {
  liveTest("sandbox.toml is valid, and has the token addresses of the local chains", function* () {
    const settings = yield* load({ path: "config/sandbox.toml", env: {} })
    expect(settings.database.path).toBe(resolve(".sandbox/tilld.db"))
    expect(settings.chains.map(({ chain, mode }) => `${chain}.${mode}`)).toEqual(
      ["ethereum", "polygon", "arbitrum", "optimism", "base"].map((chain) => `${chain}.test`)
    )
    for (const token of settings.chains.flatMap(({ tokens }) => tokens)) {
      const { address, decimals } = localTokens[token.symbol]
      expect(token).toEqual({ symbol: token.symbol, address: address.toLowerCase(), decimals, accepting: true })
    }
    expect(new Set(settings.chains.map(({ chainId }) => chainId)).size).toBe(5)
  })

  liveTest("tilld.example.toml has every key, and is valid once the wallets are set", function* () {
    const example = readFileSync("config/tilld.example.toml", "utf8")
    const { at } = yield* problemsOf(example)
    expect(Object.keys(at)).toEqual(["wallets.live", "wallets.test"])
    const env = { TILLD_WALLETS__LIVE: liveXpub, TILLD_WALLETS__TEST: testXpub }
    const settings = yield* loadText(example, env)
    const bare = yield* loadText(
      `
[server]
public_url = "https://pay.example.com"
[database]
mark_folder = "/var/cache/tilld"
[admin]
[chains.ethereum.live]
rpc_urls = ["https://ethereum-rpc.example.com", "https://ethereum-rpc.example.net"]
[chains.ethereum.test]
rpc_urls = ["https://sepolia-rpc.example.com"]
`,
      env
    )
    // All values but the two examples are the defaults.
    expect(settings.rates.fixed).not.toEqual({})
    expect(settings.chains[0]?.policies).toHaveLength(1)
    const plain = (all: typeof settings) => ({
      ...all,
      ...{ values: undefined, again: undefined },
      checkout: { logoFolder: basename(all.checkout.logoFolder) },
      rates: { ...all.rates, fixed: {} },
      chains: all.chains.map((chain) => ({ ...chain, policies: [], rpcUrls: chain.rpcUrls.map(Redacted.value) })),
      wallets: Object.values(all.wallets).map((key) => key && Redacted.value(key))
    })
    expect(plain(settings)).toEqual(plain(bare))
  })
})

it("the mark is in a cache directory outside the database's folder, so that a copy of that does not contain it", () => {
  const database = "/var/lib/tilld/tilld.db"
  const systemd = { CACHE_DIRECTORY: "/var/cache/tilld:/var/cache/other", HOME: "/var/lib/tilld" }
  expect(markFolderOf(database, systemd)).toBe("/var/cache/tilld")
  expect(markFolderOf(database, { XDG_CACHE_HOME: "/cache", HOME: "/home/me" })).toBe("/cache/tilld")
  expect(markFolderOf(database, { HOME: "/home/me" })).toBe("/home/me/.cache/tilld")
  // The home of the user tilld is the database's folder.
  expect(markFolderOf(database, { HOME: "/var/lib/tilld" })).toMatch(/^\/var\/tmp\/tilld-\d+$/)
  const sandboxes = ["/a", "/b"].map((of) => markFolderOf(`${of}/.sandbox/tilld.db`, { XDG_CACHE_HOME: "/cache" }))
  expect(sandboxes[0]).toMatch(/^\/cache\/tilld\/sandbox-[0-9a-f]{16}$/)
  expect(sandboxes[1]).not.toBe(sandboxes[0])
  expect(markFolderOf("/home/me/tilld.db", { HOME: "/home/me" })).toMatch(/^\/var\/tmp\/tilld-\d+$/)
})
