import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { pluginPermissions } from "../../src/Domain/Plugin.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { besideDaemon } from "./installation.ts"

interface Made {
  readonly id: string
  readonly key: string
}

/** An installation with a key of these options. */
const withKey = (...options: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { tilld } = yield* besideDaemon
    const made = yield* tilld(["keys", "create", "--mode", "test", "--name", "shop", "--json", ...options])
    expect(made.code, made.stderr).toBe(0)
    const rowOf = (id: string) =>
      Effect.map(tilld(["keys", "list", "--json"]), ({ stdout }) =>
        JSON.parse(stdout).find((each: { readonly id: string }) => each.id === id)
      )
    return { tilld, made: JSON.parse(made.stdout) as Made, rowOf }
  })

liveTest("a key is rolled: the new one is printed once, and the list shows both", function* () {
  const terms = ["--permissions", "payments:read", "--ip", "192.0.2.0/24", "--per-minute", "600"]
  const { made, rowOf, tilld } = yield* withKey(...terms)
  const rolled = yield* tilld(["keys", "roll", made.id, "--json"])
  expect(rolled).toMatchObject({ code: 0, stderr: "" })
  const key = JSON.parse(rolled.stdout)
  expect(key).toEqual({
    id: expect.stringMatching(/^key_/),
    key: expect.stringMatching(/^svc_test_\w{49}$/),
    mode: "test",
    permissions: ["payments:read"],
    account: "default"
  })
  expect(key.key).not.toBe(made.key)
  const former = yield* rowOf(made.id)
  expect(former).toMatchObject({
    rolledTo: key.id,
    expiresAt: expect.stringContaining("T"),
    lastFour: made.key.slice(-4)
  })
  expect(yield* rowOf(key.id)).toMatchObject({ name: "shop", ips: ["192.0.2.0/24"], perMinute: 600 })

  const again = yield* tilld(["keys", "roll", made.id])
  expect(again).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(`was rolled to ${key.id}`) })
  const human = yield* tilld(["keys", "roll", key.id, "--overlap", "0s"])
  expect(human.stdout).toMatch(/^svc_test_\w{49}\n$/)
  expect(human.stderr).toMatch(new RegExp(`^This is key key_\\S+ It is shown only now.* ${key.id} has ended\\.\n$`))

  const table = (yield* tilld(["keys", "list"])).stdout
  expect(table).toMatch(new RegExp(`${made.id}.*rolled to ${key.id}, expires .*600/min.*192\\.0\\.2\\.0/24`))
  expect(table).toMatch(new RegExp(`${key.id}.*rolled to key_\\S+, revoked `))
  for (const secret of [made.key, key.key, human.stdout.trim()]) expect(table).not.toContain(secret)
})

liveTest("a key's addresses and limits are given, listed and changed, each alone", function* () {
  const { made, rowOf, tilld } = yield* withKey(
    ...["--ip", "203.0.113.7", "--ip", "2001:DB8::/32", "--ip", "203.0.113.7/32"],
    ...["--per-minute", "600", "--per-hour", "20000"]
  )
  const shown = { ips: ["203.0.113.7/32", "2001:db8::/32"], perMinute: 600, perHour: 20_000 }
  expect(yield* rowOf(made.id)).toMatchObject(shown)
  expect((yield* tilld(["keys", "list"])).stdout).toMatch(/600\/min 20000\/h +203\.0\.113\.7\/32,2001:db8::\/32 +all/)

  const change = (...args: ReadonlyArray<string>) =>
    Effect.map(tilld(["keys", "change", made.id, "--json", ...args]), ({ code, stderr, stdout }) => {
      expect(code, stderr).toBe(0)
      return JSON.parse(stdout)
    })
  expect(yield* change("--ip", "192.0.2.0/24")).toMatchObject({ ...shown, ips: ["192.0.2.0/24"] })
  expect(yield* change("--per-minute", "5")).toMatchObject({ ips: ["192.0.2.0/24"], perMinute: 5, perHour: 20_000 })
  yield* change("--ip", "192.0.2.1", "--ip", "192.0.2.2", "--ip", "192.0.2.3", "--ip", "192.0.2.4")
  expect((yield* tilld(["keys", "list"])).stdout).toContain(" 192.0.2.1/32,192.0.2.2/32 and 2 more ")
  const bare = yield* change("--ip", "any", "--per-minute", "default", "--per-hour", "default")
  for (const term of ["ips", "perMinute", "perHour"]) expect(bare).not.toHaveProperty(term)
  expect(yield* rowOf(made.id)).toEqual(bare)
  expect((yield* tilld(["keys", "list"])).stdout).toMatch(/default +any +all/)
})

liveTest("a shop plugin's key is made with the store id, and has no permission of the API", function* () {
  const { rowOf, tilld } = yield* withKey()
  const make = (...options: ReadonlyArray<string>) =>
    tilld(["keys", "create", "--mode", "test", "--name", "plugin", ...options])
  const all = yield* make("--plugin-permissions", "all")
  expect(all.stdout).toMatch(/^svc_test_\w{49}\n$/)
  expect(all.stderr).toMatch(/^This is key key_\S+ .*store id: default-test\n$/)
  const [, id = ""] = /(key_\S+)\./.exec(all.stderr) ?? []
  expect(yield* rowOf(id)).toMatchObject({ permissions: [], pluginPermissions })

  const some = "btcpay.store.cancreateinvoice,btcpay.store.canviewinvoices,btcpay.store.cancreateinvoice"
  const made = JSON.parse((yield* make("--json", "--plugin-permissions", some)).stdout)
  const asked = ["btcpay.store.canviewinvoices", "btcpay.store.cancreateinvoice"]
  expect(made).toMatchObject({ permissions: [], pluginPermissions: asked, storeId: "default-test" })
  const rolled = JSON.parse((yield* tilld(["keys", "roll", made.id, "--json"])).stdout)
  expect(rolled).toMatchObject({ permissions: [], pluginPermissions: asked, storeId: "default-test" })
  expect((yield* tilld(["keys", "list"])).stdout).toContain(` ${asked.join()}\n`)
  const { stdout: audit } = yield* tilld(["audit", "--json"])
  expect(audit).toContain(JSON.stringify({ permissions: [], pluginPermissions: asked }).slice(1, -1))

  const both = yield* make("--plugin-permissions", "all", "--permissions", "payments:read")
  expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("either for the API or for a shop plugin") })
  const unknown = yield* make("--plugin-permissions", "btcpay.store.canviewinvoice")
  expect(unknown).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("did you mean btcpay.store.canviewinvoices")
  })
  for (const name of ["btcpay.server.canviewusers", "unrestricted"]) {
    expect(yield* make("--plugin-permissions", name)).toMatchObject({ code: 2, stdout: "" })
  }
})
