import { expect } from "@effect/vitest"
import { liveTest } from "../lib/scopedTest.ts"
import { besideDaemon, installation } from "./installation.ts"

liveTest("tilld login: prints a one-time link, which is in the audit log", function* () {
  const { tilld } = yield* besideDaemon

  const plain = yield* tilld(["login"])
  expect(plain.code).toBe(0)
  expect(plain.stdout).toMatch(/^https:\/\/pay\.example\.com\/portal\/login\/[\w-]{43}\n$/)
  expect(plain.stderr).toContain("It works once, within 10 minutes")

  const json = yield* tilld(["login", "--account", "default", "--role", "viewer", "--name", "Grace", "--json"])
  expect(json.code).toBe(0)
  expect(JSON.parse(json.stdout)).toEqual({ url: expect.stringMatching(/\/portal\/login\/[\w-]{43}$/) })
  expect((yield* tilld(["login", "--account", "default"])).code).toBe(0)

  const acts = JSON.parse((yield* tilld(["audit", "--json"])).stdout)
  expect(acts.slice(0, 3)).toMatchObject([
    { act: "login", detail: { role: "admin", account: "default", name: expect.stringContaining("alice") } },
    { act: "login", detail: { role: "viewer", account: "default", name: "Grace", person: expect.any(String) } },
    { act: "login", detail: { role: "operator", name: expect.stringContaining("alice") } }
  ])
  for (const { url } of [JSON.parse(json.stdout)]) expect(JSON.stringify(acts)).not.toContain(url.slice(-43))
})

liveTest("tilld login: refuses a role that does not fit the account, and an unknown account", function* () {
  const { start, tilld } = yield* installation
  const daemon = yield* start()
  expect(yield* tilld(["login", "--role", "admin"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Say of which account")
  })
  expect((yield* tilld(["login", "--role", "operator", "--account", "default"])).code).toBe(2)
  expect((yield* tilld(["login", "--role", "king"])).code).toBe(2)
  expect((yield* tilld(["login", "--name", ""])).code).toBe(2)
  expect(yield* tilld(["login", "--account", "nobody"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no account nobody")
  })
  yield* daemon.end("SIGTERM")
  yield* start({ TILLD_PORTAL__ENABLED: "false" })
  expect(yield* tilld(["login"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("portal.enabled")
  })
})
