import { describe, expect } from "@effect/vitest"
import { Duration } from "effect"
import { rows } from "../../lib/rows.ts"
import { alice, usdc } from "../around.ts"
import { inventing, stateOf, untilOver, watchedUsdc } from "../lying.ts"
import { coin, type ModelChain, token } from "../ModelChain.ts"
import { ledger, pass } from "../world.ts"
import { scene, seconds, servingCoins, watchedCoins, withholdingLogs } from "./scene.ts"

// Dust is settled as a sum and not corroborated one by one: the effect of one provider on the end of a payment.

interface Ending {
  readonly title: string
  readonly nodes: number
  /** Where the first node stands, of which `lie` makes a liar. */
  readonly place: number
  readonly lie: (first: ModelChain) => void
  /** Dust that is really on the chain, in block 361. */
  readonly paid: ReadonlyArray<bigint>
  readonly ends: string
}

const hidingDust = (chain: ModelChain) => {
  withholdingLogs(chain)
  const { distort } = chain
  chain.distort = (request, answer) =>
    request.method === "eth_getTransactionReceipt" ? { ...(answer as object), logs: [] } : distort(request, answer)
}

const one = { paid: [1n], ends: "failed insufficient_amount 1" }
const endings: ReadonlyArray<Ending> = [
  {
    title: "expires where one of two providers has invented it",
    nodes: 2,
    place: 0,
    lie: (liar) => inventing(liar, 371, 1n),
    paid: [],
    ends: "expired"
  },
  {
    title: "fails where both have it, before its block is final",
    nodes: 2,
    place: 0,
    lie: () => {},
    paid: [1n, 2n],
    ends: "failed insufficient_amount 3"
  },
  {
    title: "fails where the serving provider left it out and the other one reports it at the end",
    nodes: 2,
    place: 0,
    lie: withholdingLogs,
    ...one
  },
  {
    title: "fails where two of three providers have it, and the second hides it",
    nodes: 3,
    place: 1,
    lie: hidingDust,
    ...one
  },
  {
    title: "fails where two of three providers have it, and the third hides it",
    nodes: 3,
    place: 2,
    lie: hidingDust,
    ...one
  }
]

describe("a payment that has received only dust", () => {
  for (const { ends, lie, paid, title, ...cast } of endings) {
    scene(title, cast, function* (first) {
      lie(first)
      const { id } = yield* watchedUsdc(5_000n)
      first.mineMany(350)
      first.mine(...paid.map((amount) => token(usdc, alice, amount)))
      yield* untilOver(first)
      yield* seconds(30)
      expect(yield* stateOf(id)).toBe(ends)
      // Of dust, what the payment had is one exception, and what only one provider has is none.
      const had = ends.startsWith("failed") ? [{ kind: "underpaid" }] : []
      expect(yield* rows("SELECT kind FROM exceptions")).toEqual(had)
    })
  }

  scene("fails where both have it as coins", { nodes: 2 }, function* (first, other) {
    servingCoins(first, other)
    const { id } = yield* watchedCoins(5_000n)
    first.mineMany(350)
    first.mine(coin(alice, 1n))
    yield* untilOver(first)
    yield* seconds(30)
    expect(yield* ledger).toMatchObject([{ position: "tx:0", amount: "1" }])
    expect(yield* stateOf(id)).toBe("failed insufficient_amount 1")
  })

  const settings = { pollInterval: Duration.seconds(30) }
  scene("fails by the only one that responds, after its patience", { nodes: 2, settings }, function* (first, other) {
    const { id } = yield* watchedUsdc(5_000n)
    first.mineMany(350)
    first.mine(token(usdc, alice, 1n))
    other.failure = "unreachable"
    yield* untilOver(first)
    expect(yield* stateOf(id)).toBe("detecting 1")
    yield* pass("75 minutes")
    expect(yield* stateOf(id)).toBe("failed insufficient_amount 1")
  })
})
