import { expect, it } from "@effect/vitest"
import { Effect, Either, Layer, Redacted } from "effect"
import { History } from "../../src/Chains/History.ts"
import { type Connected, Networks } from "../../src/Chains/Networks.ts"
import { makeClient, RpcError, type RpcRequest } from "../../src/Chains/Rpc.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import { Settings } from "../../src/Settings.ts"
import { soleProvider } from "../lib/soleProvider.ts"
import { chainSettings, settings } from "./world.ts"

const address = (n: number): string => `0x${n.toString(16).padStart(40, "A")}`
const usdc = `0x${"c".repeat(40)}`
const zero = `0x${"0".repeat(64)}`

/** What the chain at each URL knows of addresses; one that is not there does not answer. */
type Known = Readonly<Record<string, Readonly<Record<string, { coins?: bigint; sent?: number; tokens?: bigint }>>>>

const header = { number: "0x1", hash: zero, parentHash: zero, timestamp: "0x1" }

/** Whatever reads the balances of many addresses at once is not served here. */
const refused = ({ method, params }: RpcRequest) =>
  method === "eth_call" && (params[0] as { to: string }).to !== usdc
    ? Either.left(new RpcError({ host: "any", method, reason: "unsupported", detail: "not served" }))
    : undefined

const answer = (known: Known[string], { method, params }: RpcRequest): unknown => {
  if (method === "eth_getBlockByNumber") return header
  const call = params[0] as string | { to: string; data: string }
  const of = typeof call === "string" ? call : `0x${call.data.slice(-40)}`
  const { coins = 0n, sent = 0, tokens = 0n } = known[of.toLowerCase()] ?? {}
  if (method === "eth_getBalance") return `0x${coins.toString(16)}`
  if (method === "eth_getTransactionCount") return `0x${sent.toString(16)}`
  expect(call).toMatchObject({ to: usdc, data: expect.stringMatching(/^0x70a08231[0-9a-f]{64}$/) })
  return tokens === 0n ? zero : `0x${tokens.toString(16).padStart(64, "0")}`
}

const around = (known: Known, batches: Array<number>) => {
  const client = (url: string) =>
    makeClient({
      host: url,
      sendEach: (calls) =>
        Effect.suspend(() => {
          batches.push(calls.length)
          const there = known[url]
          return there === undefined
            ? new RpcError({ host: url, method: "any", reason: "unreachable", detail: "gone" })
            : Effect.succeed(calls.map((call) => refused(call) ?? Either.right(answer(there, call))))
        }),
      counters: { calls: 0, batches: 0, sent: 0, received: 0 }
    })
  const tokens = [{ symbol: "USDC" as const, address: usdc, decimals: 6 }]
  const chains = [
    chainSettings({ chain: "ethereum", rpcUrls: [Redacted.make("a")], tokens }),
    chainSettings({ chain: "base", rpcUrls: [Redacted.make("b")] }),
    chainSettings({ chain: "polygon", mode: "live", rpcUrls: [Redacted.make("c")] })
  ]
  const networks = {
    connected: ({ chain, mode }: Network): Connected => {
      const url = chains.find((one) => one.chain === chain && one.mode === mode)?.rpcUrls[0]
      const { providers } = soleProvider(client(url === undefined ? "" : Redacted.value(url)))
      return { providers }
    }
  }
  return History.layer.pipe(
    Layer.provide(Layer.succeed(Networks, networks)),
    Layer.provide(Layer.succeed(Settings, settings(chains)))
  )
}

const vet = (addresses: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const history = yield* History
    const used = new Set<string>()
    const unreachable = yield* history.vet("test", addresses, (found) => {
      for (const address of found) used.add(address)
    })
    return { used, unreachable }
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
    expect(vetted).toEqual({ used: new Set([1, 2, 3, 4].map(address)), unreachable: [] })
  }).pipe(Effect.provide(around(known, [])))
})

it.effect("leaves out a chain that does not answer, and names it", () =>
  Effect.gen(function* () {
    expect(yield* vet([address(1), address(4)])).toEqual({ used: new Set([address(4)]), unreachable: ["ethereum"] })
  }).pipe(Effect.provide(around({ b: { [lower(4)]: { sent: 3 } } }, [])))
)

it.effect("asks in batches that providers accept, each address once", () => {
  const batches: Array<number> = []
  const used = { a: { [lower(77)]: { tokens: 5n } }, b: {} }
  return Effect.gen(function* () {
    const vetted = yield* vet(Array.from({ length: 100 }, (_, n) => address(n)))
    expect(vetted.used).toEqual(new Set([address(77)]))
    expect(Math.max(...batches)).toBeLessThanOrEqual(100)
    // On each chain the head, two ways to read many balances, and then one by one; what each has sent; the token on one.
    expect(batches.reduce((sum, calls) => sum + calls, 0)).toBe(2 * (3 + 100 + 100) + 100)
  }).pipe(Effect.provide(around(used, batches)))
})

it.effect("knows an address that was emptied by what it has sent, however many come before it", () =>
  Effect.gen(function* () {
    const { used } = yield* vet(Array.from({ length: 100 }, (_, n) => address(n)))
    expect(used).toEqual(new Set([address(63)]))
  }).pipe(Effect.provide(around({ a: {}, b: { [lower(63)]: { sent: 1 } } }, [])))
)
