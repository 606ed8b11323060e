import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { defaultAccount } from "../../src/Auth.ts"
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
  /** What has come for a payment, once a block is mined. */
  const arrived = Effect.fnUntraced(function* (address: string) {
    const chain = yield* Chain
    yield* chain.mine()
    return yield* chain.tokenBalance("USDC", address as `0x${string}`)
  })

  test("that a payment is paid from its page: all, half, or too much", function* () {
    const visitor = yield* ada
    for (const [part, money] of Object.entries({ all: 3_000_000n, half: 1_500_000n, more: 3_300_000n })) {
      const { address, id } = yield* makePayment({ amount: 3_000_000n })
      const page = `${home}/payments/${id}`
      expect((yield* visitor.get(page)).text).toContain(`action="${page}/simulate"`)
      const sent = yield* visitor.post(`${page}/simulate`, { part })
      expect(sent).toMatchObject({ status: 303, headers: { location: `${page}?done=simulated` } })
      expect([part, yield* arrived(address)]).toEqual([part, money])
    }
    expect(yield* rows("SELECT act FROM audit WHERE act = 'sandbox pay' AND via = 'portal'")).toHaveLength(3)
  })

  test("nothing for a payment that has ended, nor on a public test network", function* () {
    const visitor = yield* ada
    const { address, id } = yield* makePayment()
    yield* visitor.post(`${home}/payments/${id}/cancel`)
    const ended = yield* visitor.post(`${home}/payments/${id}/simulate`)
    expect(ended.status).toBe(422)
    expect(yield* arrived(address)).toBe(0n)
    const publicOne = yield* makePayment({ chain: "optimism", currency: "ETH" })
    const page = `${home}/payments/${publicOne.id}`
    expect((yield* visitor.get(page)).text).not.toContain("/simulate")
    expect((yield* visitor.post(`${page}/simulate`)).status).toBe(404)
  })
})

liveSuite(portalApp, "the portal without a local chain", (test) => {
  test("pays nothing, least of all in live mode", function* () {
    const visitor = yield* admin
    for (const mode of ["test", "live"] as const) {
      const { id } = yield* makePayment({}, { account: defaultAccount, mode })
      expect((yield* visitor.post(`/portal/a/default/${mode}/payments/${id}/simulate`)).status).toBe(404)
    }
    expect(yield* rows("SELECT 1 FROM audit WHERE act = 'sandbox pay'")).toEqual([])
  })
})
