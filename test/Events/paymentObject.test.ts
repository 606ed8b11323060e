import { describe, expect, it } from "vitest"
import type { Payment } from "../../src/Domain/Payment.ts"
import { type PaymentTerms, paymentObject } from "../../src/Events/paymentObject.ts"
import { somePayment } from "../lib/payments.ts"
import { testChain, testSettings } from "../lib/settings.ts"

const to = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
const tokenContract = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"

const { server } = testSettings("")
const terms: PaymentTerms = {
  chains: [
    testChain({ chain: "base", mode: "live", chainId: 8453 }),
    // Not what the payments were created with.
    testChain({ chainId: 31_337, tokens: [{ symbol: "USDC", address: `0x${"c".repeat(40)}`, decimals: 6 }] })
  ],
  server: { ...server, publicUrl: "https://pay.example.com" }
}

const shown = (over: Partial<Payment> = {}) => paymentObject(somePayment({ address: to, ...over }), terms)
const token = { id: 1, contract: tokenContract, decimals: 8 }
const usdc = { currency: "USDC", token, amount: 25_000_000n } as const

describe("a payment shows what a wallet needs to pay it", () => {
  it("in the chain's own coin: no contract, and the amount as the value", () => {
    const { chainId, decimals, paymentUri, ...rest } = shown()
    expect([chainId, decimals, paymentUri]).toEqual([31_337, 18, `ethereum:${to}@31337?value=1000`])
    expect(rest).not.toHaveProperty("tokenContract")
  })

  it("in a token: by the contract and the decimals that it was created with, whatever is configured now", () => {
    expect(shown(usdc)).toMatchObject({
      tokenContract,
      chainId: 31_337,
      decimals: 8,
      paymentUri: `ethereum:${tokenContract}@31337/transfer?address=${to}&uint256=25000000`
    })
  })

  it("with every digit of the largest amount, and no exponent", () => {
    const amount = 2n ** 256n - 1n
    const digits = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
    expect(shown({ amount }).paymentUri).toBe(`ethereum:${to}@31337?value=${digits}`)
  })

  it("by the chain of its own mode", () => {
    expect(shown({ mode: "live" }).chainId).toBe(8453)
  })
})

describe("a payment that is paid in part asks for what is missing", () => {
  const part = (amountReceived: bigint, over: Partial<Payment> = {}) => {
    const { amountRemaining, paymentUri } = shown({ ...usdc, status: "detecting", amountReceived, ...over })
    return [amountRemaining, paymentUri?.replace(/.*uint256=/, "")]
  }

  it("and for nothing once everything has come", () => {
    expect(part(1n)).toEqual(["24999999", "24999999"])
    expect(part(24_999_999n)).toEqual(["1", "1"])
    expect(part(25_000_000n)).toEqual([undefined, undefined])
    expect(part(25_000_001n)).toEqual([undefined, undefined])
  })

  it("and for nothing once what has come counts as the amount", () => {
    const tolerant = { toleranceBps: 100 }
    expect(part(24_750_000n, tolerant)).toEqual([undefined, undefined])
    expect(part(24_749_999n, tolerant)).toEqual(["250001", "250001"])
  })

  it("while nothing has come there is no remainder, only the amount", () => {
    expect(shown(usdc)).not.toHaveProperty("amountRemaining")
  })
})

it.each(["confirmed", "expired", "failed"] as const)("a payment that is %s asks for nothing more", (status) => {
  const ended = shown({ ...usdc, status, amountReceived: 1n, endedAt: 1 })
  expect(ended).toMatchObject({ tokenContract, chainId: 31_337, decimals: 8, amountReceived: "1" })
  for (const field of ["paymentUri", "amountRemaining"]) expect(ended).not.toHaveProperty(field)
})

it("of a chain that is not configured any more the id is left out, and the rest is shown", () => {
  const gone = shown({ ...usdc, chain: "polygon", status: "detecting", amountReceived: 1n })
  expect(gone).toMatchObject({
    chain: "polygon",
    amount: "25000000",
    amountReceived: "1",
    amountRemaining: "24999999",
    tokenContract,
    decimals: 8
  })
  for (const field of ["chainId", "paymentUri"]) expect(gone).not.toHaveProperty(field)
})

it("every payment shows its checkout page, whatever has become of it", () => {
  for (const status of ["pending", "detecting", "confirmed", "expired", "failed"] as const) {
    const { checkoutToken, ...payment } = somePayment({ status })
    const { checkoutUrl } = paymentObject({ ...payment, checkoutToken }, terms)
    expect(checkoutUrl).toBe(`https://pay.example.com/pay/${checkoutToken}`)
  }
})

it("no object of a payment shows where its customer goes, or its own webhook", () => {
  const object = shown({ redirectUrl: "https://shop.example/thanks", webhookUrl: "https://shop.example/hook" })
  expect(JSON.stringify(object)).not.toContain("shop.example")
})
