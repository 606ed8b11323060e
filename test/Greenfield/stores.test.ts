// What shop plugins are told of the chains: a plugin hides its payments where none is read.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type ChainHealth, Chains } from "../../src/Chains.ts"
import type { ApiKey } from "../../src/Domain/ApiKey.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import { storeOperations } from "../../src/Greenfield/stores.ts"
import { testChain, testSettingsLayer } from "../lib/settings.ts"
import { tempStore } from "../lib/store.ts"

const usdc = { symbol: "USDC", address: `0x${"a".repeat(40)}`, decimals: 6 } as const
const chains = [
  testChain(),
  testChain({ chain: "polygon", tokens: [usdc] }),
  testChain({ mode: "live", chainId: 8453 })
]

/** What a test key is told where these networks are read, and no other. */
const infoWhere = (...read: ReadonlyArray<Network>) => {
  const health = chains.map(({ chain, mode }): ChainHealth => {
    const ready = read.some((one) => one.chain === chain && one.mode === mode)
    return { chain, mode, ready, providers: [] }
  })
  return Effect.gen(function* () {
    const info = (yield* storeOperations).find(({ path }) => path === "server/info")
    const key = { mode: "test" } as ApiKey
    const asking = { key, path: {}, query: new URLSearchParams(), body: {}, presented: "", storeReplay: undefined }
    return yield* info?.run(asking) ?? Effect.void
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Layer.mock(Chains, {
          ...{
            behind: () => 0,
            wake: () => {},
            viewed: () => {},
            exclusively: () => () => Effect.die("not asked for")
          },
          ...{ look: () => Effect.void, refresh: () => Effect.void, health: Effect.succeed(health) }
        }),
        tempStore,
        testSettingsLayer("", { chains })
      )
    )
  )
}

const [base, polygon] = ["ETH-BASE", "USDC-POLYGON"].map((paymentMethodId) => ({ paymentMethodId }))

it.scoped("one chain of the key's mode is enough, and those of the other mode count for nothing", () =>
  Effect.gen(function* () {
    expect(yield* infoWhere({ chain: "polygon", mode: "test" })).toMatchObject({
      fullySynched: true,
      syncStatus: [
        { ...base, available: false },
        { ...polygon, available: true }
      ]
    })
    expect(yield* infoWhere({ chain: "base", mode: "live" })).toMatchObject({
      fullySynched: false,
      syncStatus: [
        { ...base, available: false },
        { ...polygon, available: false }
      ]
    })
  })
)
