import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reader } from "../../../src/Sql.ts"
import { alice, aroundSomeReal, health, second, usdc, watchedPayment, withTokens } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { Announced, pass, paymentById } from "../world.ts"

// Both providers are asked about a receipt after its block was replaced and before the watcher has seen the reorg: their
// denial is correct, and no provider has lied.
it.scoped(
  "a reorg between reading and asking refutes nothing, and does not count against the provider that reported it",
  () => {
    const first = new ModelChain(10)
    const other = first.twin()
    const paid = token(usdc, alice, 5n)
    other.intercept = (batch) => {
      if (!batch.some(({ method }) => method === "eth_getTransactionReceipt") || first.height > 15) return
      first.rollback(first.height - 10)
      first.mine()
      first.mine(paid)
      first.mineMany(5)
    }
    return Effect.gen(function* () {
      const { id } = yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
      first.mine(paid)
      yield* second
      for (let i = 0; i < 2; i++) {
        first.mine()
        yield* second
      }
      yield* pass("20 seconds")
      expect(first.height).toBe(17)
      const reader = yield* Reader
      expect(yield* reader.all("SELECT block_number FROM receipts WHERE refuted = 1 OR denied_by IS NOT NULL")).toEqual(
        []
      )
      expect((yield* paymentById(id))?.status).toBe("confirmed")
      expect(yield* Announced).toEqual(["detecting", "confirmed"])
      expect((yield* health)?.providers.map(({ healthy }) => healthy)).toEqual([true, true])
    }).pipe(aroundSomeReal([first, other], withTokens))
  }
)
