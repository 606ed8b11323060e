import { expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { AddressHistory } from "../../../src/Chains/balances/AddressHistory.ts"
import { Networks } from "../../../src/Chains/providers/Networks.ts"
import type { RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import { Settings } from "../../../src/Settings.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { Refusal } from "../../sim/node.ts"
import { nodeClient, replies } from "../../sim/nodeClient.ts"
import { errorOf } from "../providing.ts"
import { chainSettings, settings } from "../world.ts"

const address = (n: number): string => `0x${n.toString(16).padStart(40, "A")}`
const usdc = `0x${"c".repeat(40)}`
const zero = `0x${"0".repeat(64)}`

/** What the chain at each URL knows of addresses; one that is not there does not respond. */
type Known = Readonly<Record<string, Readonly<Record<string, { coins?: bigint; sent?: number; tokens?: bigint }>>>>

const header = { number: "0x1", hash: zero, parentHash: zero, timestamp: "0x1" }

const answer = (known: Known[string], { method, params }: RpcRequest): unknown => {
  if (method === "eth_getBlockByNumber") return header
  const call = params[0] as string | { to: string; data: string }
  // Whatever reads the balances of many addresses at once.
  if (typeof call !== "string" && call.to !== usdc)
    throw new Refusal("the method eth_call does not exist/is not available")
  const of = typeof call === "string" ? call : `0x${call.data.slice(-40)}`
  const { coins = 0n, sent = 0, tokens = 0n } = known[of.toLowerCase()] ?? {}
  if (method === "eth_getBalance") return `0x${coins.toString(16)}`
  if (method === "eth_getTransactionCount") return `0x${sent.toString(16)}`
  expect(call).toMatchObject({ to: usdc, data: expect.stringMatching(/^0x70a08231[0-9a-f]{64}$/) })
  return tokens === 0n ? zero : `0x${tokens.toString(16).padStart(64, "0")}`
}

/** The first chain has the URLs `a`, the others one each. */
const around = (known: Known, batches: Array<number>, a: ReadonlyArray<string> = ["a"]) => {
  const client = (url: string) =>
    nodeClient(url, (calls) => {
      batches.push(calls.length)
      const there = known[url]
      return there === undefined ? errorOf(url, "unreachable") : replies(url, calls, (call) => answer(there, call))
    })
  const tokens = [{ symbol: "USDC" as const, address: usdc, decimals: 6 }]
  const chains = [
    chainSettings({ chain: "ethereum", rpcUrls: a.map((url) => Redacted.make(url)), tokens }),
    chainSettings({ chain: "base", rpcUrls: [Redacted.make("b")] }),
    chainSettings({ chain: "polygon", mode: "live", rpcUrls: [Redacted.make("c")] })
  ]
  const networks = {
    providersOf: ({ chain, mode }: Network) => {
      const urls = chains.find((one) => one.chain === chain && one.mode === mode)?.rpcUrls ?? []
      const [first = client(""), ...others] = urls.map((url) => client(Redacted.value(url)))
      return someProviders(first, ...others).providers
    }
  }
  return AddressHistory.layer.pipe(
    Layer.provide(Layer.succeed(Networks, networks)),
    Layer.provide(Layer.succeed(Settings, settings(chains)))
  )
}

const vet = (addresses: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const history = yield* AddressHistory
    const used = new Set<string>()
    const alone = new Set<string>()
    const unreachable = yield* history.vet("test", addresses, (found) => {
      for (const address of found.addresses) (found.isConfirmed ? used : alone).add(address)
    })
    return { used, alone, unreachable }
  })
const lower = (n: number) => address(n).toLowerCase()

it.effect("finds coins, transactions and tokens on any chain of the mode, and no other's", () => {
  const known = {
    a: { [lower(1)]: { coins: 1n }, [lower(2)]: { sent: 1 }, [lower(3)]: { tokens: 1n } },
    b: { [lower(4)]: { sent: 3 } },
    c: { [lower(5)]: { coins: 1n } }
  }
  return Effect.gen(function* () {
    const vetted = yield* vet([0, 1, 2, 3, 4, 5].map(address))
    expect(vetted).toEqual({ used: new Set(), alone: new Set([1, 2, 3, 4].map(address)), unreachable: [] })
  }).pipe(Effect.provide(around(known, [])))
})

it.effect("names a chain that does not respond, and returns the addresses of the others", () =>
  Effect.gen(function* () {
    const vetted = yield* vet([address(1), address(4)])
    expect(vetted).toEqual({ used: new Set(), alone: new Set([address(4)]), unreachable: ["ethereum"] })
  }).pipe(Effect.provide(around({ b: { [lower(4)]: { sent: 3 } } }, [])))
)

it.effect("asks in batches that providers accept, each address once, at any position in the list", () => {
  const batches: Array<number> = []
  // An emptied address shows by its nonce only.
  const used = { a: { [lower(77)]: { tokens: 5n } }, b: { [lower(63)]: { sent: 1 } } }
  return Effect.gen(function* () {
    const vetted = yield* vet(Array.from({ length: 100 }, (_, n) => address(n)))
    expect(vetted.alone).toEqual(new Set([address(77), address(63)]))
    expect(Math.max(...batches)).toBeLessThanOrEqual(100)
    // On each chain the head, two ways to read many balances, and then one by one; what each has sent; the token on one.
    expect(batches.reduce((sum, calls) => sum + calls, 0)).toBe(2 * (3 + 100 + 100) + 100)
  }).pipe(Effect.provide(around(used, batches)))
})

const all = [0, 1, 2, 3].map(address)
const liar = Object.fromEntries(all.map((one) => [one.toLowerCase(), { sent: 1 }]))

it.effect("separates what another provider of the chain confirms from what one provider alone reports", () => {
  const batches: Array<number> = []
  const known = { a: liar, a2: { [lower(1)]: { coins: 1n } }, b: {} }
  return Effect.gen(function* () {
    expect(yield* vet(all)).toEqual({
      used: new Set([address(1)]),
      alone: new Set(all.filter((one) => one !== address(1))),
      unreachable: []
    })
  }).pipe(Effect.provide(around(known, batches, ["a", "a2"])))
})

it.effect("asks others about nothing that the serving provider does not claim", () => {
  const batches: Array<number> = []
  const known = { a: { [lower(1)]: { sent: 1 } }, a2: { [lower(1)]: { sent: 1 } }, b: {} }
  return Effect.gen(function* () {
    expect((yield* vet(all)).used).toEqual(new Set([address(1)]))
    // On each chain as above for four addresses, with one token, and of the other provider for one.
    expect(batches.reduce((sum, calls) => sum + calls, 0)).toBe(2 * (3 + 4 + 4) + 4 + (3 + 1 + 1) + 1)
  }).pipe(Effect.provide(around(known, batches, ["a", "a2"])))
})

clockTest("one other provider is enough to confirm, whether or not the rest respond", function* () {
  const known = { a: liar, a3: { [lower(2)]: { sent: 1 } }, b: {} }
  const three = Effect.provide(vet(all), around({ ...known, a2: {} }, [], ["a", "a2", "a3"]))
  expect(yield* three).toMatchObject({
    used: new Set([address(2)]),
    alone: new Set(all.filter((one) => one !== address(2)))
  })
  const silent = Effect.provide(vet(all), around({ a: liar, b: {} }, [], ["a", "a2", "a3"]))
  expect(yield* silent).toMatchObject({ used: new Set(), alone: new Set(all) })
})
