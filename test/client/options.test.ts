import { describe, expect, it } from "@effect/vitest"
import { type ClientOptions, createClient } from "../../src/client/index.ts"

const apiKey = `svc_test_${"k".repeat(49)}`
const order = { merchantRef: "order-1", amount: "25000000", currency: "ETH", chain: "base" } as const

describe("a client is not created", () => {
  it.each<readonly [Partial<ClientOptions>, string]>([
    [{ baseUrl: "pay.example.com" }, "baseUrl must be an absolute http or https URL"],
    [{ baseUrl: "ftp://pay.example.com" }, "baseUrl must be an absolute http or https URL"],
    [{ baseUrl: "https://pay.example.com/?x=1" }, "without query"],
    [{ baseUrl: "https://me:secret@pay.example.com" }, "baseUrl must have no user info"],
    [{ baseUrl: "https://pay.example.com/v1/" }, "baseUrl must not end in /v1"],
    [{ apiKey: "" }, "apiKey must be svc_live_ or svc_test_"],
    [{ apiKey: `${apiKey}\n` }, "apiKey must be svc_live_ or svc_test_"],
    [{ timeoutMs: 0 }, "timeoutMs must be above 0"],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, "timeoutMs must be above 0"],
    [{ maxRetries: -1 }, "maxRetries must be an integer from 0 on"],
    [{ maxRetries: Number.NaN }, "maxRetries must be an integer from 0 on"]
  ])("with %j", (wrong, message) => {
    const make = () => createClient({ baseUrl: "https://pay.example.com", apiKey, ...wrong })
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
    expect(make).not.toThrow(/secret|kkk/)
  })

  it.each(["", " a", "a ", "é", "a\nb", "x".repeat(256)])(
    "a payment is not created with the idempotency key %j",
    async (key) => {
      const fetch = async () => expect.fail("it was sent")
      const tilld = createClient({ baseUrl: "https://pay.example.com", apiKey, fetch })
      await expect(tilld.payments.create(order, { idempotencyKey: key })).rejects.toThrow("idempotencyKey must be")
    }
  )
})
