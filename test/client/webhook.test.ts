import { createHmac } from "node:crypto"
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createClient, verifyWebhook, WebhookTimestampError, WebhookVerificationError } from "../../src/client/index.ts"
import { localChain, makeHome, serveHere } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilldJson } from "../lib/tilld.ts"

interface Vector {
  readonly name: string
  readonly secret: string
  readonly body: string
  readonly signature: string
  readonly valid: boolean
}

const vectors: ReadonlyArray<Vector> = JSON.parse(
  readFileSync(new URL("../vectors/webhook.json", import.meta.url), "utf8")
)
const [sample = expect.fail("there are no vectors")] = vectors
const { body, secret, signature } = sample
const other = "whsec_another-secret-of-the-shop"

const sign = (text: string) => createHmac("sha256", secret).update(text).digest("hex")

describe("verifyWebhook", () => {
  it.each(vectors.filter(({ valid }) => valid))("accepts $name", async ({ body, secret, signature }) => {
    const event = JSON.parse(body)
    expect(await verifyWebhook(body, signature, secret)).toEqual(event)
    expect(await verifyWebhook(Buffer.from(body), signature, [secret])).toEqual(event)
    expect(await verifyWebhook(new TextEncoder().encode(body), [signature], [other, secret])).toEqual(event)
  })

  it.each(vectors.filter(({ valid }) => !valid))("refuses $name", async ({ body, secret, signature }) => {
    for (const bytes of [body, Buffer.from(body)]) {
      await expect(verifyWebhook(bytes, signature, [secret, other])).rejects.toThrow(WebhookVerificationError)
    }
  })

  it("takes a part of a larger buffer for that part", async () => {
    const padded = Buffer.from(`xx${body}xx`)
    expect(await verifyWebhook(padded.subarray(2, -2), signature, secret)).toEqual(JSON.parse(body))
  })

  it.each([[undefined], [null], [[]]])("says that the header is missing: %j", async (header) => {
    await expect(verifyWebhook(body, header, secret)).rejects.toThrow("There is no X-Service-Signature header.")
  })

  it.each([
    [[signature, signature]],
    [`${signature}, ${signature}`],
    [` ${signature}`],
    [`${signature}\n`],
    [`sha256=${signature}`]
  ])("refuses the header %j", async (header) => {
    await expect(verifyWebhook(body, header, secret)).rejects.toThrow("must be 64 lower-case hex digits")
  })

  it.each(["", "null", "[]", "{}", '{"id":"evt_1","event":"payment.created","createdAt":"x","data":null}', "{"])(
    "refuses %j although it is signed: it is not an event",
    async (text) => {
      await expect(verifyWebhook(text, sign(text), secret)).rejects.toThrow(WebhookVerificationError)
      await expect(verifyWebhook(text, sign(text), secret)).rejects.toThrow("not an event")
    }
  )

  it("takes a test of the endpoint, which has no payment", async () => {
    const test = {
      id: "test_1",
      event: "test",
      createdAt: "2026-01-31T12:00:00.000Z",
      endpoint: "wh_1",
      message: "A test."
    }
    const text = JSON.stringify(test)
    expect(await verifyWebhook(text, sign(text), secret)).toEqual(test)
  })

  it("needs secrets that are secrets, and the body as it came", async () => {
    const forged = createHmac("sha256", "").update(body).digest("hex")
    for (const none of ["", "whsec_", [], [secret, ""]]) {
      await expect(verifyWebhook(body, forged, none)).rejects.toThrow(TypeError)
    }
    const parsed: object = JSON.parse(body)
    await expect(Reflect.apply(verifyWebhook, undefined, [parsed, signature, secret])).rejects.toThrow("the raw body")
    await expect(Reflect.apply(verifyWebhook, undefined, [body, signature, [undefined]])).rejects.toThrow(TypeError)
  })

  liveTest("takes what a daemon delivers", function* () {
    const inbox = yield* makeInbox()
    const chain = yield* localChain("base")
    const home = yield* makeHome({ chains: new Map([["base", chain]]), caFile: inbox.caFile })
    const daemon = yield* serveHere(home)
    const asked = ["webhooks", "secret", "--mode", "test", "--config", home.config]
    const own = yield* tilldJson<{ secret: string }>(asked)

    const tilld = createClient({ baseUrl: `${daemon.url}/`, apiKey: daemon.key })
    const endpoint = { url: `${inbox.url}/endpoint`, events: ["payment.created"], secret } as const
    yield* Effect.promise(() => tilld.webhooks.create(endpoint))
    const order = { merchantRef: "order-1", amount: "1", currency: "ETH", chain: "base" } as const
    const payment = yield* Effect.promise(() =>
      tilld.payments.create({ ...order, webhookUrl: `${inbox.url}/own`, metadata: { note: "Grüße 🎉" } })
    )
    for (const [path, key, wrong] of [
      ["/endpoint", secret, own.secret],
      ["/own", own.secret, secret]
    ] as const) {
      const { request } = yield* inbox.next(path, payment)
      const header = request.headers["x-service-signature"]
      const event = yield* Effect.promise(() => verifyWebhook(request.body, header, key))
      expect(event).toMatchObject({ event: "payment.created", data: payment })
      expect(yield* Effect.promise(() => verifyWebhook(request.body, request.headers, key))).toEqual(event)
      const later = { now: () => Number(request.headers["webhook-timestamp"]) * 1000 + 301_000 }
      yield* Effect.promise(() =>
        expect(verifyWebhook(request.body, request.headers, key, later)).rejects.toThrow(WebhookTimestampError)
      )
      yield* Effect.promise(() =>
        expect(verifyWebhook(request.body, header, wrong)).rejects.toThrow(WebhookVerificationError)
      )
    }
  })
})
