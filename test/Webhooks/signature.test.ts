import { createHmac } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Redacted } from "effect"
import { signatureHeaders, signingKey } from "../../src/Webhooks/signature.ts"

const sign = (secret: string, id: string, body: string, at: number) =>
  signatureHeaders(signingKey(Redacted.make(secret)), id, Buffer.from(body, "utf8"), at)

it("is the hex HMAC-SHA256 of the body under the whole secret", () => {
  // printf '%s' '{"id":"evt_1","note":"ünïcödé 💶"}' | openssl dgst -sha256 -hmac whsec_correct-horse-battery-staple
  const headers = sign("whsec_correct-horse-battery-staple", "evt_1", '{"id":"evt_1","note":"ünïcödé 💶"}', 0)
  expect(headers["x-service-signature"]).toBe("8d3fb458738f8ad0497e6c160cfd197aed21b9d7aa181bfcc2cee279101b75fd")
})

it("signs as the libraries of Standard Webhooks do", () => {
  // The vector of their own suites.
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
  const headers = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}', 1_614_265_330_999)
  expect(headers["webhook-id"]).toBe("msg_p5jXN8AQM9LWM0D4loKWxJek")
  expect(headers["webhook-timestamp"]).toBe("1614265330")
  expect(headers["webhook-signature"]).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
})

it.each([
  ["24 bytes", Buffer.alloc(24, 1).toString("base64"), true],
  ["64 bytes", Buffer.alloc(64, 1).toString("base64"), true],
  ["23 bytes", Buffer.alloc(23, 1).toString("base64"), false],
  ["65 bytes", Buffer.alloc(65, 1).toString("base64"), false],
  ["no padding", Buffer.alloc(25, 1).toString("base64").replace(/=+$/, ""), false],
  ["the URL alphabet", Buffer.alloc(24, 0xff).toString("base64url"), false],
  ["other characters", "correct-horse-battery-staple-and-more", false]
])("a secret of %s", (_, encoded, isStandard) => {
  const secret = `whsec_${encoded}`
  const headers = sign(secret, "evt_1", "{}", 0)
  expect("webhook-signature" in headers).toBe(isStandard)
  expect(headers["x-service-signature"]).toBe(createHmac("sha256", secret).update("{}").digest("hex"))
})
