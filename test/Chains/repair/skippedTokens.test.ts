import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { findSkippedTokens } from "../../../src/Chains/repair/skippedTokens.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { change } from "../../lib/rows.ts"
import { address, alice, next, usdc, watchedPayment } from "../around.ts"
import { openScene } from "../corroboration/scene.ts"
import { token } from "../ModelChain.ts"
import { errorOf } from "../providing.ts"
import { ledger } from "../world.ts"
import { exclusively } from "./repairing.ts"

const bob = address(0xb0b)

/** The same node, which reports this token balance for every address. */
const holding = (client: RpcClient, amount: bigint): RpcClient => ({
  ...client,
  send: (calls) => {
    const contracts = calls.flatMap(({ method, params: [call] }) =>
      method === "eth_call" ? [(call as { readonly to: string }).to] : []
    )
    if (contracts.length === 0) return client.send(calls)
    const words = contracts.map((to) => `0x${(to === usdc ? amount : 0n).toString(16).padStart(64, "0")}`)
    // Multicall is not served here.
    return contracts.every((to) => to.includes("ccc")) ? Effect.succeed(words) : errorOf("model", "unsupported")
  }
})

openScene(
  "all transactions that brought a skipped address its tokens are claimed, once",
  { nodes: 1 },
  function* (chain) {
    yield* watchedPayment(alice)
    yield* next(chain, token(usdc, bob, 3n))
    yield* next(chain, { ...token(usdc, bob, 4n), isStateSync: true })
    yield* next(chain)
    yield* change("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 1000, 0)", bob)
    const turn = yield* exclusively
    const search = turn((watch, provider) => {
      const client = holding(provider.client, 7n)
      return findSkippedTokens(watch, { ...provider, client }, { number: 13, hash: "", time: 0 }, [bob])
    })
    expect(yield* ledger).toEqual([])
    yield* search
    expect((yield* ledger).map(({ amount, block_number }) => [block_number, amount])).toEqual([
      [11, "3"],
      [12, "4"]
    ])
    const before = chain.count("eth_getLogs")
    yield* search
    expect(chain.count("eth_getLogs")).toBe(before)
  }
)
