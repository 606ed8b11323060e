import { expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import { EndpointId, newEndpointId } from "../../src/Domain/Ids.ts"
import { Secrets } from "../../src/Secrets.ts"
import { Reader } from "../../src/Sql.ts"
import { defaultSecrets } from "../../src/Webhooks/DefaultSecrets.ts"
import * as EndpointsRepo from "../../src/Webhooks/queue/EndpointsRepo.ts"
import { endpointContext } from "../../src/Webhooks/SigningKeys.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { failOnce, openShop, portalApp, valueOf } from "./shop.ts"

const target = (url: string, secret = "whsec_0123456789abcdef") =>
  new URLSearchParams({ id: newEndpointId(), url, secret, events: "payment.created" })

/** The secret that a page shows once. */
const shownSecret = (text: string) => /<input id="new-secret"[^>]* value="(whsec_[^"]+)"/.exec(text)?.[1]

/** The secret that signs for an endpoint, as it is stored. */
const secretInForce = (id: string) =>
  Effect.gen(function* () {
    const endpoint = EndpointId.make(id)
    const pair = yield* EndpointsRepo.sealedPair(yield* Reader, endpoint)
    const secrets = yield* Secrets
    return pair && Redacted.value(secrets.open(pair.secret, endpointContext(endpoint)))
  })

liveSuite(portalApp, "webhook endpoints in the portal", (test, it) => {
  test("an endpoint that was added in the portal is the API's, and its secret in force is shown, once", function* () {
    const { account, admin, api, base, key } = yield* openShop
    const blank = (yield* admin.get(`${base}/webhooks/new`)).text
    expect(valueOf(blank, "secret")).toBe("")
    // What a shop acts on is chosen: a change of the status, and money that waits for it.
    const chosen = [...blank.matchAll(/value="(payment\.\w+)" checked/g)].map(([, kind]) => kind)
    expect(chosen).toEqual([...StatusEventKind.literals, "payment.exception"])
    const fields = target("https://192.0.2.1/hook", "")
    const added = yield* admin.post(`${base}/webhooks`, fields)
    expect(added.status).toBe(200)
    const again = yield* admin.post(`${base}/webhooks`, fields)
    expect(again).toMatchObject({ status: 409, text: expect.stringContaining(`/webhooks/${fields.get("id")}"`) })
    expect(shownSecret(again.text)).toBeUndefined()
    const secret = shownSecret(added.text)
    const { body } = yield* api.call("GET", "/v1/webhooks", { key })
    expect(secret).toBe(yield* secretInForce(body.data[0].id))
    expect(body.data).toEqual([expect.objectContaining({ url: "https://192.0.2.1/hook", events: ["payment.created"] })])
    expect(added.text).toContain(`href="${base}/webhooks/${body.data[0].id}"`)
    const page = yield* admin.get(`${base}/webhooks/${body.data[0].id}`)
    expect(page.text).not.toContain(secret)
    const acts = yield* rows<{ act: string; detail: string }>("SELECT act, detail FROM audit WHERE account_id = ?", [
      account
    ])
    expect(acts.map(({ act, detail }) => [act, JSON.parse(detail).host])).toContainEqual([
      "webhooks register",
      "192.0.2.1"
    ])
    expect(acts.map(({ detail }) => detail).join()).not.toContain("hook")
  })

  it.effect.each([
    [target("http://192.0.2.1/"), "URL must begin with https://"],
    [target("https://10.0.0.1/"), "10.0.0.1"],
    [target("https://192.0.2.1/", "whsec_short"), "must be whsec_ followed by"],
    [new URLSearchParams({ url: "https://192.0.2.1/", secret: "whsec_0123456789abcdef" }), "must have at least one"],
    [new URLSearchParams({ id: "wh_1", url: "https://192.0.2.1/" }), "must be the id of a new endpoint"]
  ] as const)("what cannot be an endpoint is refused with what was typed: %s", ([fields, message]) =>
    Effect.gen(function* () {
      const { admin, base } = yield* openShop
      const refused = yield* admin.post(`${base}/webhooks`, fields)
      expect(refused.status).toBe(422)
      expect(refused.text).toContain(message)
      expect(valueOf(refused.text, "url")).toBe(fields.get("url"))
    })
  )

  test("the list shows the state of each endpoint", function* () {
    const { admin, base, endpoint, pay } = yield* openShop
    const id = yield* endpoint()
    expect((yield* admin.get(`${base}/webhooks`)).text).toContain("no event delivered yet")
    const paid = yield* pay("order 1")
    yield* execute(
      "UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, done_at = 5000, attempts = 1 WHERE payment_id = ?",
      [paid]
    )
    const well = yield* admin.get(`${base}/webhooks`)
    expect(well.text).toContain("healthy")
    expect(well.text).toContain("1970-01-01 00:00:05 UTC")
    yield* failOnce(yield* pay("order 2"))
    yield* failOnce(yield* pay("order 3"))
    expect((yield* admin.get(`${base}/webhooks`)).text).toContain("2 failing")
    expect((yield* admin.get(`${base}/webhooks/${id}`)).text).toContain("2 failing")
  })

  test("an endpoint is changed, and its secret rotated, from its page", function* () {
    const { admin, api, base, endpoint, key } = yield* openShop
    const path = `${base}/webhooks/${yield* endpoint()}`
    const changed = yield* admin.post(path, target("https://192.0.2.1/mended"))
    expect(changed.status).toBe(303)
    expect((yield* api.call("GET", "/v1/webhooks", { key })).body.data[0].url).toBe("https://192.0.2.1/mended")
    const refused = yield* admin.post(path, target("https://127.0.0.2/"))
    expect(refused.status).toBe(422)
    expect(valueOf(refused.text, "url")).toBe("https://127.0.0.2/")

    const id = path.slice(path.lastIndexOf("/") + 1)
    const replacing = Effect.map(admin.get(path), ({ text }) => valueOf(text, "replaces"))
    const form = { secret: "", overlap: "24h", replaces: yield* replacing }
    const rotated = yield* admin.post(`${path}/secret`, form)
    expect(rotated.status).toBe(200)
    expect(shownSecret(rotated.text)).toBe(yield* secretInForce(id))
    expect(rotated.text).toContain("The former secret also signs until")
    const twice = yield* admin.post(`${path}/secret`, form)
    expect(twice).toMatchObject({ status: 409, text: expect.stringContaining("sent twice") })
    expect(shownSecret(rotated.text)).toBe(yield* secretInForce(id))
    expect((yield* admin.get(path)).text).toContain("The former secret signs until")
    const early = yield* admin.post(`${path}/secret`, { ...form, replaces: yield* replacing })
    expect(early).toMatchObject({ status: 422, text: expect.stringContaining("still signs, until") })
    const own = "whsec_of_my_own_0123456789"
    const again = yield* admin.post(`${path}/secret`, { secret: own, overlap: "0s", replaces: yield* replacing })
    expect(shownSecret(again.text)).toBe(own)
    expect(again.text).toContain("The former secret signs no more")
    expect(yield* secretInForce(id)).toBe(own)
    expect((yield* admin.get(path)).text).not.toContain("The former secret signs until")
    for (const page of [path, `${base}/webhooks`]) expect((yield* admin.get(page)).text).not.toContain("whsec_of")
  })

  test("an endpoint tells of its former secret no longer than it signs", function* () {
    const { admin, base, endpoint } = yield* openShop
    const id = yield* endpoint()
    const path = `${base}/webhooks/${id}`
    const until = Effect.map(admin.get(path), ({ text }) => text.includes("The former secret signs until"))
    const replaces = valueOf((yield* admin.get(path)).text, "replaces")
    yield* admin.post(`${path}/secret`, { secret: "", overlap: "24h", replaces })
    expect(yield* until).toBe(true)
    yield* execute("UPDATE endpoints SET previous_until = 1 WHERE id = ?", [id])
    expect(yield* until).toBe(false)
  })

  test("a test message shows the receiver's response, or why there is none", function* () {
    const { account, admin, base, endpoint } = yield* openShop
    const id = yield* endpoint()
    // The guard allowed the address when it was registered, and refuses it now.
    yield* execute("UPDATE endpoints SET url = 'https://127.0.0.1:1/' WHERE id = ?", [id])
    const tested = yield* admin.post(`${base}/webhooks/${id}/test`)
    expect(tested.status).toBe(200)
    expect(tested.text).toContain("The test message did not arrive")
    expect(tested.text).toMatch(/<code>test_[\w-]+<\/code>/)
    const acts = yield* rows<{ act: string }>("SELECT act FROM audit WHERE account_id = ?", [account])
    expect(acts.map(({ act }) => act)).toContain("webhooks test")
  })

  test("deleting an endpoint says first how many deliveries it cancels", function* () {
    const { admin, api, base, endpoint, key, pay } = yield* openShop
    const id = yield* endpoint()
    for (const order of ["1", "2"]) yield* pay(order)
    const path = `${base}/webhooks/${id}/delete`
    expect((yield* admin.get(path)).text).toContain("2 deliveries have not arrived yet, and would be cancelled")
    expect((yield* api.call("GET", "/v1/webhooks", { key })).body.data).toHaveLength(1)
    const deleted = yield* admin.post(path)
    expect(deleted).toMatchObject({ status: 303, headers: { location: `${base}/webhooks?cancelled=2` } })
    expect((yield* admin.get(`${base}/webhooks?cancelled=2`)).text).toContain("cancelled with it: 2.")
    expect((yield* api.call("GET", "/v1/webhooks", { key })).body.data).toEqual([])
    expect((yield* admin.get(`${base}/webhooks/${id}`)).status).toBe(404)
  })

  test("markup in a URL is text", function* () {
    const { admin, base, endpoint } = yield* openShop
    const id = yield* endpoint("?a=<b>'\"><script>alert(1)</script>")
    yield* execute(`UPDATE endpoints SET url = 'https://192.0.2.1/"><script>alert(1)</script>' WHERE id = ?`, [id])
    for (const path of ["", `/${id}`, `/${id}/delete`]) {
      const { text } = yield* admin.get(`${base}/webhooks${path}`)
      expect(text).not.toContain("<script>alert")
      expect(text).toContain("&lt;script>alert(1)")
      expect(text).not.toMatch(/value="https:\/\/192\.0\.2\.1\/">/)
    }
  })

  test("a viewer sees the endpoints without forms, and may change none", function* () {
    const { base, endpoint, viewer } = yield* openShop
    const path = `${base}/webhooks/${yield* endpoint()}`
    for (const page of [`${base}/webhooks`, path]) {
      expect((yield* viewer.get(page)).text.split('method="post"')).toHaveLength(2)
    }
    for (const page of [`${base}/webhooks/new`, `${path}/delete`]) expect((yield* viewer.get(page)).status).toBe(403)
    for (const act of ["", "/test", "/secret", "/delete"]) {
      expect((yield* viewer.post(`${path}${act}`, target("https://192.0.2.1/"))).status).toBe(403)
    }
    expect((yield* viewer.post(`${base}/webhooks`, target("https://192.0.2.1/"))).status).toBe(403)
  })

  test("the endpoint of another account does not exist", function* () {
    const { admin, base } = yield* openShop
    const other = yield* openShop
    const path = `${base}/webhooks/${yield* other.endpoint()}`
    for (const act of ["", "/delete"]) expect((yield* admin.get(`${path}${act}`)).status).toBe(404)
    for (const act of ["", "/test", "/secret", "/delete"]) {
      expect((yield* admin.post(`${path}${act}`, target("https://192.0.2.1/"))).status).toBe(404)
    }
    expect((yield* other.api.call("GET", "/v1/webhooks", { key: other.key })).body.data).toHaveLength(1)
  })

  test("the default secret is shown once, when it is new, and the former signs on for the overlap", function* () {
    const { account, admin, base, viewer } = yield* openShop
    const path = `${base}/webhooks/default-secret`
    const owner = { account, mode: "test" } as const
    expect((yield* admin.get(`${base}/webhooks`)).text).toContain(path)
    expect((yield* admin.get(path)).text).toContain("There is none yet")
    expect((yield* admin.post(path, { overlap: "year" })).status).toBe(422)
    const opened = Effect.map(admin.get(path), ({ text }) => ({ overlap: "24h", replaces: valueOf(text, "replaces") }))
    const first = yield* opened
    const made = yield* admin.post(path, first)
    expect(made.text).not.toContain("former secret")
    const secret = /whsec_[\w+/]{43}=/.exec(made.text)?.[0] ?? ""
    expect(secret).toBe(Redacted.value((yield* defaultSecrets(owner)).current))
    const shown = yield* admin.get(path)
    expect(shown.text).toContain("Created")
    expect(shown.text).not.toContain(secret)
    const twice = yield* admin.post(path, first)
    expect(twice).toMatchObject({ status: 409, text: expect.stringContaining("sent twice") })
    expect(secret).toBe(Redacted.value((yield* defaultSecrets(owner)).current))
    const next = yield* admin.post(path, yield* opened)
    expect(next.text).toContain("The former secret also signs until")
    expect((yield* defaultSecrets(owner)).previous).toBeDefined()
    const third = yield* admin.post(path, yield* opened)
    expect(third).toMatchObject({ status: 422, text: expect.stringContaining("still signs, until") })
    const ended = yield* admin.post(path, { ...(yield* opened), overlap: "0s" })
    expect(ended.text).toContain("The former secret signs no more")
    const acts = yield* rows("SELECT act FROM audit WHERE account_id = ? AND act LIKE 'webhooks secret%'", [account])
    expect(acts).toHaveLength(3)

    expect((yield* viewer.get(path)).text).not.toContain(`action="${path}"`)
    expect((yield* viewer.post(path, { overlap: "0s" })).status).toBe(403)
  })
})
