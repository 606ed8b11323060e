import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { permissions } from "../../src/Domain/ApiKey.ts"
import { newApiKeyId } from "../../src/Domain/Ids.ts"
import { signIn, type Visitor } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { rows } from "../lib/store.ts"
import { openShop, portalApp, valueOf } from "./shop.ts"

const shownKey = (text: string): string => /svc_(?:test|live)_[\w-]{20,}/.exec(text)?.[0] ?? ""

const form = (over: Readonly<Record<string, string>> = {}) => {
  const fields = new URLSearchParams({ id: newApiKeyId(), name: "server", ...over })
  for (const permission of permissions) fields.append("permissions", permission)
  return fields
}

liveSuite(portalApp, "API keys in the portal", (test, it) => {
  test("a key that was made in the portal works on the API, and its form shows it once", function* () {
    const { account, admin, api, base } = yield* openShop
    const opened = yield* admin.get(`${base}/keys/new`)
    const fields = form({ id: valueOf(opened.text, "id"), expires: "90d", perMinute: "7" })
    const made = yield* admin.post(`${base}/keys`, fields)
    expect(made).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } })
    const key = shownKey(made.text)
    const answered = yield* api.call("GET", "/v1/payments", { key })
    expect(answered).toMatchObject({ status: 200, headers: { "x-ratelimit-limit": "7" } })

    const again = yield* admin.post(`${base}/keys`, fields)
    expect(again).toMatchObject({ status: 422, text: expect.stringContaining("sent before") })
    // Nor does the id of another account's key say whose it is.
    const other = yield* openShop
    expect((yield* other.admin.post(`${other.base}/keys`, fields)).status).toBe(422)
    const listed = yield* admin.get(`${base}/keys`)
    expect(listed.text).toContain(`svc_test_…${key.slice(-4)}`)
    expect(again.text + listed.text).not.toContain(key)
    const id = fields.get("id") ?? ""
    expect((yield* admin.get(`${base}/keys/${id}`)).text).not.toContain(key)
    expect(listed.text.split("/keys/key_")).toHaveLength(3)
    const acts = yield* rows<{ act: string; who: string; account_id: string; detail: string }>(
      "SELECT act, who, account_id, detail FROM audit WHERE act LIKE 'keys %' AND account_id = ?",
      [account]
    )
    expect(acts).toEqual([
      expect.objectContaining({ act: "keys create", who: expect.stringContaining("admin of"), account_id: account })
    ])
    expect(JSON.parse(acts[0]?.detail ?? "")).toMatchObject({ key: id, name: "server", perMinute: 7 })
  })

  test("a preset decides what a key may do, whatever else is ticked, and a refusal keeps the choice", function* () {
    const { account, admin, base } = yield* openShop
    const made = (over: Readonly<Record<string, string>>) => admin.post(`${base}/keys`, form(over))
    const unnamed = yield* made({ preset: "reader", name: "" })
    expect(unnamed.status).toBe(422)
    expect(unnamed.text).toMatch(/value="reader"[^>]* checked|checked[^>]* value="reader"/)
    yield* made({ preset: "reader", name: "a" })
    yield* made({ preset: "shop", name: "b" })
    yield* made({ preset: "custom", name: "c" })
    const none = yield* admin.post(`${base}/keys`, { id: newApiKeyId(), name: "d", preset: "custom" })
    expect(none.text).toContain("What it may do")
    expect(none.status).toBe(422)
    const stored = yield* rows<{ name: string; permissions: string }>(
      "SELECT name, permissions FROM api_keys WHERE account_id = ? AND name IN ('a', 'b', 'c', 'd') ORDER BY name",
      [account]
    )
    expect(stored).toEqual([
      { name: "a", permissions: "payments:read,webhooks:read,quotes:read,exceptions:read" },
      { name: "b", permissions: "payments:read,payments:write,quotes:read,exceptions:read" },
      { name: "c", permissions: permissions.join() }
    ])
  })

  test("a rolled key works beside its replacement, which is shown once, and a second roll is refused", function* () {
    const { admin, api, base } = yield* openShop
    const fields = form({ ips: "127.0.0.1\n::1" })
    const key = shownKey((yield* admin.post(`${base}/keys`, fields)).text)
    const path = `${base}/keys/${fields.get("id")}`
    const to = valueOf((yield* admin.get(path)).text, "to")
    const rolled = yield* admin.post(`${path}/roll`, { overlap: "1h", to })
    const next = shownKey(rolled.text)
    expect(next).not.toBe(key)
    for (const each of [key, next]) expect((yield* api.call("GET", "/v1/payments", { key: each })).status).toBe(200)
    const again = yield* admin.post(`${path}/roll`, { overlap: "1h", to })
    expect(again).toMatchObject({ status: 422, text: expect.stringContaining("sent before") })
    expect(again.text).not.toContain(next)
    const other = yield* admin.post(`${path}/roll`, { overlap: "1h", to: newApiKeyId() })
    expect(other).toMatchObject({ status: 422, text: expect.stringContaining("This key has ended") })
    // The id of an existing key, in a forged form.
    const taken = yield* admin.post(`${base}/keys/${to}/roll`, { overlap: "1h", to })
    expect(taken).toMatchObject({ status: 422, text: expect.stringContaining("sent before") })
    expect((yield* admin.get(path)).text).toContain("127.0.0.1/32, ::1/128")
  })

  test("a key is revoked only behind a page that asks, and refused from then on", function* () {
    const { admin, api, base } = yield* openShop
    const fields = form()
    const key = shownKey((yield* admin.post(`${base}/keys`, fields)).text)
    const path = `${base}/keys/${fields.get("id")}`
    const asked = yield* admin.get(`${path}/revoke`)
    expect(asked.text).toContain(`svc_test_…${key.slice(-4)}`)
    expect((yield* api.call("GET", "/v1/payments", { key })).status).toBe(200)
    expect((yield* admin.post(`${path}/revoke`)).status).toBe(303)
    expect((yield* api.call("GET", "/v1/payments", { key })).status).toBe(401)
    const after = yield* admin.get(path)
    expect(after.text).toContain("revoked")
    expect(after.text).not.toContain("/roll")
  })

  test("an admin lowers a key's limits, and only an operator raises them", function* () {
    const { admin, api, base } = yield* openShop
    const operator = yield* signIn(api)
    const fields = form({ perMinute: "50" })
    const key = shownKey((yield* admin.post(`${base}/keys`, fields)).text)
    const path = `${base}/keys/${fields.get("id")}`
    const perMinute = Effect.map(
      api.call("GET", "/v1/payments", { key }),
      ({ headers }) => headers["x-ratelimit-limit"]
    )
    const change = (who: Visitor, to: Readonly<Record<string, string>>) =>
      Effect.map(who.post(`${path}/terms`, { ips: "", perHour: "", ...to }), ({ status, text }) =>
        status === 303 ? status : [status, /must be [^<]*/.exec(text)?.[0]]
      )
    const tooMuch = (most: number) => [422, `must be ${most} at most: only the operator raises it`]
    expect(yield* perMinute).toBe("50")

    // The operator has said nothing of this key: its admin may have what is configured.
    expect(yield* change(admin, { perHour: "1000001" })).toEqual(tooMuch(1_000_000))
    expect(yield* perMinute).toBe("50")
    expect(yield* change(admin, { perMinute: "60" })).toBe(303)
    expect(yield* perMinute).toBe("60")

    expect(yield* change(operator, { perMinute: "80", perHour: "2000000" })).toBe(303)
    expect(yield* perMinute).toBe("80")
    expect(yield* change(admin, { perMinute: "81" })).toEqual(tooMuch(80))
    expect(yield* change(admin, { perMinute: "80", perHour: "2000001" })).toEqual(tooMuch(2_000_000))
    expect(yield* change(admin, { perMinute: "70" })).toBe(303)
    // An operator who changes something else does not take what the admin may go back to.
    expect(yield* change(operator, { perMinute: "70", ips: "127.0.0.1\n::1" })).toBe(303)
    expect(yield* perMinute).toBe("70")
    expect(yield* change(admin, { perMinute: "" })).toBe(303)
    expect(yield* perMinute).toBe("80")

    expect(yield* change(operator, { perMinute: "40" })).toBe(303)
    expect(yield* change(admin, { perMinute: "41" })).toEqual(tooMuch(40))
    expect(yield* change(admin, { ips: "198.51.100.0/24", perHour: "9" })).toBe(303)
    expect((yield* api.call("GET", "/v1/payments", { key })).status).toBe(403)
    expect((yield* admin.get(path)).text).toContain("9 an hour")
    expect((yield* admin.post(`${base}/keys`, form({ perHour: "1000001" }))).text).toContain(tooMuch(1_000_000)[1])
  })

  it.effect.each([
    [{ name: " " }, "name", "is required"],
    [{ name: "a\u0007" }, "name", "must be 1 to 100 printable characters"],
    [{ ips: "203.0.113.7/24" }, "ips", "has an address inside its block"],
    [{ id: "" }, "", "must be the id of a new key"],
    [{ permissions: "payments:everything" }, "", "must be one of"]
  ] as const)("a form with %j is shown again with what was typed", ([over, path, message]) =>
    Effect.gen(function* () {
      const { admin, base } = yield* openShop
      const refused = yield* admin.post(`${base}/keys`, form({ name: "till <b>", ...over }))
      expect(refused.status).toBe(422)
      expect(refused.text).toContain(message)
      if (path !== "") expect(refused.text).toContain(`id="key-${path}-problem"`)
      expect(refused.text).not.toContain("till <b>")
      expect((yield* admin.get(`${base}/keys`)).text.split("/keys/key_")).toHaveLength(2)
    })
  )
})
