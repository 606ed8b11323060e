// What the tests of releases ask of a daemon over HTTP, wherever it runs.
import { expect } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { request } from "undici"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { confirmations, makeCall, pay } from "../lib/daemon.ts"

export const get = (url: string) =>
  Effect.promise(async () => {
    const { body, statusCode } = await request(url)
    return { status: statusCode, text: await body.text() }
  })

/** Makes payments with an API key, and pays them on the chain. */
export const shopOf = (url: string, key: string, chain: LocalChain) => {
  const call = (method: "GET" | "POST", path: string, body?: unknown) =>
    Effect.scoped(
      Effect.flatMap(makeCall(url, key), (send) => Effect.map(send<PaymentObject>(method, path, body), (a) => a.body))
    )
  const payment = ({ id }: PaymentObject) => call("GET", `/v1/payments/${id}`)
  const create = (merchantRef: string) =>
    call("POST", "/v1/payments", { merchantRef, amount: "1000000", currency: "USDC", chain: "base" })
  /** Waits until it is confirmed. */
  const settle = (created: PaymentObject) =>
    pay(chain, created).pipe(
      Effect.zipRight(chain.mine(confirmations)),
      Effect.zipRight(
        Effect.repeat(payment(created), {
          schedule: Schedule.spaced("100 millis"),
          until: ({ status }) => status === "confirmed"
        })
      )
    )
  return { create, payment, settle }
}

/** All pages that a daemon reads late answer, with the assets that they name. */
export const expectPages = (url: string, checkoutUrl: string | undefined) =>
  Effect.gen(function* () {
    const pages = ["/docs", "/openapi.json", "/portal/sign-in", new URL(checkoutUrl ?? "").pathname]
    for (const page of pages) {
      const { status, text } = yield* get(`${url}${page}`)
      expect(status, page).toBe(200)
      const assets = [...text.matchAll(/(?:src|href)="(\/?(?:assets|docs)[^"#]*)"/g)].map(([, path]) => path)
      if (page !== "/openapi.json") expect(assets.length, page).toBeGreaterThan(0)
      for (const asset of assets) {
        expect((yield* get(new URL(asset ?? "", `${url}${page}`).href)).status, `${page} ${asset}`).toBe(200)
      }
    }
  })
