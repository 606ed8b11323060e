import { Effect } from "effect"
import { TestApi } from "../lib/api.ts"
import { execute } from "../lib/store.ts"

/** On Base. */
export const usdc = { symbol: "USDC", address: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", decimals: 6 } as const

let orders = 0

/** A payment of 25 USDC, made as a shop makes one, and its page. `change` is SQL behind `UPDATE payments SET`. */
export const newPayment = (over: object = {}) =>
  Effect.gen(function* () {
    const { call, host, newKey, port } = yield* TestApi
    const key = yield* newKey()
    const json = { merchantRef: `order ${++orders}`, amount: "25000000", currency: "USDC", chain: "base", ...over }
    const { body: payment } = yield* call("POST", "/v1/payments", { key, json })
    const path = new URL(payment.checkoutUrl).pathname
    return {
      ...{ call, path, payment },
      origin: `http://${host}:${port}`,
      cancel: call("POST", `/v1/payments/${payment.id}/cancel`, { key }),
      change: (columns: string) => execute(`UPDATE payments SET ${columns} WHERE id = ?`, [payment.id]),
      page: (search = "", headers = {}) => call("GET", path + search, { headers })
    }
  })
