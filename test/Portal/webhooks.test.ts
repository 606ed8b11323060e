import { expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import { EndpointId, eventId, newEndpointId, newInvoiceId } from "../../src/Domain/Ids.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { Secrets } from "../../src/Secrets.ts"
import { Reader } from "../../src/Sql.ts"
import * as EndpointsRepo from "../../src/Webhooks/queue/EndpointsRepo.ts"
import { defaultSecrets, endpointContext } from "../../src/Webhooks/SigningKeys.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
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
    expect(again).toMatchObject({ status: 422, text: expect.stringContaining("sent before") })
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

  test("a shop plugin's endpoint is marked, shows what it was sent, and can be deleted alone", function* () {
    const { account, admin, base } = yield* openShop
    const owner = { account, mode: "test" } as const
    const plugin = {
      ...{ enabled: true, automaticRedelivery: true, everything: false },
      specificEvents: ["InvoiceSettled", "<b>"]
    }
    const url = "https://192.0.2.1/plugin"
    const { id } = yield* Effect.flatMap(Webhooks, (webhooks) =>
      webhooks.create(owner, { url, events: [], plugin, secret: Redacted.make("any text") })
    )
    const invoice = newInvoiceId(1)
    const event = { ...owner, id: eventId(invoice, "InvoiceSettled", 0), invoice, kind: "InvoiceSettled" as const }
    yield* Effect.flatMap(Outbox, (outbox) => inTransaction(outbox.publishPlugin({ ...event, body: { a: 1 } }, 1)))
    const path = `${base}/webhooks/${id}`
    for (const page of [path, `${base}/webhooks`]) {
      const { text } = yield* admin.get(page)
      expect(text).toContain("Shop plugin: InvoiceSettled, &lt;b>")
    }
    const { text } = yield* admin.get(path)
    expect(text).toContain(`${path}/delete`)
    expect(text).not.toContain("Rotate")
    expect(text).not.toContain("Send a test")
    const listed = yield* admin.get(`${base}/deliveries?endpoint=${id}`)
    const [, delivery = ""] = /deliveries\/(dlv_[A-Za-z0-9_-]+)/.exec(listed.text) ?? []
    const shown = yield* admin.get(`${base}/deliveries/${delivery}`)
    expect(shown.text).toContain(`"webhookId":"${id}"`.replaceAll('"', "&quot;"))
    expect((yield* admin.get(`${base}/deliveries`)).text).toContain(delivery)
    expect((yield* admin.post(path, target(url))).status).toBe(422)
    expect((yield* admin.post(`${path}/delete`, {})).status).toBe(303)
    expect((yield* admin.get(path)).status).toBe(404)
  })

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

  test("an endpoint is changed, and its secret replaced by one's own, from its page", function* () {
    const { admin, api, base, endpoint, key } = yield* openShop
    const id = yield* endpoint()
    const path = `${base}/webhooks/${id}`
    const changed = yield* admin.post(path, target("https://192.0.2.1/mended"))
    expect(changed.status).toBe(303)
    expect((yield* api.call("GET", "/v1/webhooks", { key })).body.data[0].url).toBe("https://192.0.2.1/mended")
    const refused = yield* admin.post(path, target("https://127.0.0.2/"))
    expect(refused.status).toBe(422)
    expect(valueOf(refused.text, "url")).toBe("https://127.0.0.2/")

    const secret = "whsec_of_my_own_0123456789"
    const replace = Effect.fnUntraced(function* (overlap: string) {
      const replaces = valueOf((yield* admin.get(path)).text, "replaces")
      return shownSecret((yield* admin.post(`${path}/secret`, { secret, overlap, replaces })).text)
    })
    const tells = Effect.map(admin.get(path), ({ text }) => text.includes("The former secret signs until"))
    expect([yield* replace("24h"), yield* secretInForce(id), yield* tells]).toEqual([secret, secret, true])
    expect([yield* replace("0s"), yield* tells]).toEqual([secret, false])
    yield* execute("UPDATE endpoints SET previous_secret = secret, previous_until = 1 WHERE id = ?", [id])
    expect(yield* tells).toBe(false)
    for (const page of [path, `${base}/webhooks`]) expect((yield* admin.get(page)).text).not.toContain("whsec_of")
  })

  it.scoped.each(["an endpoint", "an account"])(
    "the secret of %s is replaced once by a form, shown once, and the former signs on for the overlap",
    (whose) =>
      Effect.gen(function* () {
        const { account, admin, base, endpoint } = yield* openShop
        const id = yield* endpoint()
        const isAccounts = whose === "an account"
        const path = `${base}/webhooks/${isAccounts ? "default-secret" : id}`
        const inForce = isAccounts
          ? Effect.map(defaultSecrets({ account, mode: "test" }), ({ current }) => Redacted.value(current))
          : secretInForce(id)
        const opened = Effect.map(admin.get(path), ({ text }) => ({
          ...{ secret: "", overlap: "24h", replaces: valueOf(text, "replaces") }
        }))
        const send = (form: Record<string, string>) => admin.post(isAccounts ? path : `${path}/secret`, form)
        if (isAccounts) {
          expect((yield* admin.get(`${base}/webhooks`)).text).toContain(path)
          expect((yield* admin.get(path)).text).toContain("There is none yet")
          expect((yield* send(yield* opened)).text).not.toContain("former secret")
          expect((yield* admin.get(path)).text).toContain("Created")
        }
        const form = yield* opened
        expect((yield* send({ ...form, overlap: "year" })).status).toBe(422)
        const { status, text } = yield* send(form)
        expect([status, shownSecret(text)]).toEqual([200, yield* inForce])
        expect(text).toContain("The former secret also signs until")
        expect(yield* send(form)).toMatchObject({ status: 422, text: expect.stringContaining("sent twice") })
        expect(shownSecret(text)).toBe(yield* inForce)
        expect((yield* admin.get(path)).text).not.toContain(yield* inForce)
        const early = yield* send(yield* opened)
        expect(early).toMatchObject({ status: 422, text: expect.stringContaining("still signs, until") })
        const ended = yield* send({ ...(yield* opened), overlap: "0s" })
        expect(ended.text).toContain("The former secret signs no more")
        expect(shownSecret(ended.text)).toBe(yield* inForce)
        const acts = rows("SELECT act FROM audit WHERE account_id = ? AND act LIKE 'webhooks secret%'", [account])
        expect(yield* acts).toHaveLength(isAccounts ? 3 : 0)
      })
  )

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
})
