import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { type LocalChain, startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { signIn } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"
import { rows } from "../lib/store.ts"
import { admin, home, makePayment, portalApp } from "./shop.ts"

class Chain extends Context.Tag("test/Chain")<Chain, LocalChain>() {}

/** A shop with a local chain, and a chain of a public test network beside it. */
const sandbox = Layer.unwrapScoped(
  Effect.map(startLocalChain({ chain: "base", chainId: 31_337, tokens: ["USDC", "DAI"] }), (chain) =>
    Layer.merge(
      Layer.succeed(Chain, chain),
      testApp({
        chains: [
          testChain({
            rpcUrls: [Redacted.make(chain.url)],
            tokens: Object.entries(chain.tokens).map(([symbol, { address, decimals }]) => ({
              symbol: symbol as "USDC" | "DAI",
              address,
              decimals
            }))
          }),
          testChain({ chain: "optimism", rpcUrls: [Redacted.make("https://127.0.0.1:1")] })
        ]
      })
    )
  )
)

liveSuite(sandbox, "the portal simulates", (test) => {
  const ada = Effect.flatMap(TestApi, (api) => signIn(api, { role: "admin", account: "default" }))
  /** What came for the payment of a redirect, by token, once a block is mined. */
  const arrived = Effect.fnUntraced(function* (location: unknown) {
    const chain = yield* Chain
    const id = /payments\/(pay_[\w-]+)\?done=/.exec(String(location))?.[1] ?? ""
    const [payment] = yield* rows<{ address: `0x${string}`; time: number }>(
      "SELECT address, expires_at - created_at AS time FROM payments WHERE id = ?",
      [id]
    )
    if (payment === undefined) return yield* Effect.dieMessage(`no payment in ${location}`)
    yield* chain.mine()
    const of = (symbol: "USDC" | "DAI") => chain.tokenBalance(symbol, payment.address)
    return { USDC: yield* of("USDC"), DAI: yield* of("DAI"), seconds: payment.time / 1000, id }
  })

  test("payments that are paid, underpaid, overpaid, paid with another token, and left to expire", function* () {
    const visitor = yield* ada
    const expected = {
      all: { USDC: 25_000_000n, DAI: 0n, seconds: 3600 },
      half: { USDC: 12_500_000n, DAI: 0n, seconds: 60 },
      more: { USDC: 27_500_000n, DAI: 0n, seconds: 3600 },
      wrong_token: { USDC: 0n, DAI: 25n * 10n ** 18n, seconds: 60 },
      nothing: { USDC: 0n, DAI: 0n, seconds: 60 }
    }
    for (const [scenario, money] of Object.entries(expected)) {
      const made = yield* visitor.post(`${home}/simulate/pay`, { asset: "USDC-base", scenario })
      expect([scenario, made.status]).toEqual([scenario, 303])
      expect(yield* arrived(made.headers.location)).toMatchObject(money)
    }
    expect(yield* rows("SELECT act FROM audit WHERE act LIKE 'sandbox%' OR act LIKE 'payments%'")).toHaveLength(9)
  })

  test("money for an existing payment, and refuses an unknown one, in the form that was sent", function* () {
    const visitor = yield* ada
    const { id } = yield* makePayment({ amount: 3_000_000n })
    expect((yield* visitor.get(`${home}/payments/${id}`)).text).toContain(`/simulate?payment=${id}`)
    expect((yield* visitor.get(`${home}/simulate?payment=${id}`)).text).toContain(`value="${id}"`)
    const sent = yield* visitor.post(`${home}/simulate/pay`, { payment: id, scenario: "all" })
    expect(yield* arrived(sent.headers.location)).toMatchObject({ USDC: 3_000_000n, id })
    const wrong = yield* visitor.post(`${home}/simulate/pay`, { payment: "pay_<b>", scenario: "more" })
    expect(wrong.status).toBe(400)
    expect(wrong.text).toContain("Payment must be the id of a payment of this account, in test mode")
    expect(wrong.text).toContain('value="pay_&lt;b>"')
    expect(wrong.text).toMatch(/<option value="more" selected/)
    // The money of a public test network cannot be spent here.
    expect((yield* visitor.get(`${home}/simulate`)).text).not.toContain("optimism")
    const publicOne = yield* makePayment({ chain: "optimism", currency: "ETH" })
    const refused = yield* visitor.post(`${home}/simulate/pay`, { payment: publicOne.id, scenario: "all" })
    expect(refused.text).toContain("is on optimism, which is no local chain here")
  })

  test("money on another chain only where there is one with the currency", function* () {
    const made = yield* (yield* ada).post(`${home}/simulate/pay`, { asset: "USDC-base", scenario: "wrong_chain" })
    expect(made.status).toBe(400)
    expect(made.text).toContain("What happens needs another local chain with USDC")
  })

  test("a reorg of as many blocks as were asked for", function* () {
    const visitor = yield* ada
    const chain = yield* Chain
    yield* chain.mine(3)
    const before = yield* chain.head
    const done = yield* visitor.post(`${home}/simulate/reorg`, { chain: "base", depth: "2" })
    expect(done.headers.location).toBe(`${home}/simulate?done=base`)
    expect((yield* visitor.get(`${home}/simulate?done=base`)).text).toContain("The last blocks of base were replaced.")
    const after = yield* chain.head
    expect([after.number, after.hash === before.hash]).toEqual([before.number, false])
    for (const depth of ["0", "33", "x"]) {
      const { text } = yield* visitor.post(`${home}/simulate/reorg`, { chain: "base", depth })
      expect(text).toContain("Blocks must be a whole number from 1 to 32")
    }
  })
})

liveSuite(portalApp, "the portal without a local chain", (test) => {
  test("says why nothing can be simulated, and refuses to", function* () {
    const visitor = yield* admin
    const reasons = {
      test: "No chain of the test mode is a local one",
      live: "live money is not for trying things out"
    }
    for (const [mode, reason] of Object.entries(reasons)) {
      const base = `/portal/a/default/${mode}/simulate`
      const page = yield* visitor.get(base)
      expect(page.text).toContain(reason)
      expect(page.text).not.toContain(`action="${base}`)
      for (const form of ["pay", "reorg"]) expect((yield* visitor.post(`${base}/${form}`)).status).toBe(403)
    }
    expect(yield* rows("SELECT 1 FROM payments")).toEqual([])
  })
})
