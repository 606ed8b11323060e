import { expect, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { verificationPass } from "../../../src/Chains/corroboration/verificationPass.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, aroundTwo, lostReceipts, usdc, watchedPayment, withTwo } from "../around.ts"
import { ModelChain, modelRpc, token } from "../ModelChain.ts"
import { ledger, notingSettlement, pass, watch, world } from "../world.ts"

const verified = Effect.flatMap(Reader, (reader) =>
  Effect.map(reader.get<{ number: number }>("SELECT verified_number AS number FROM scans"), (row) => row?.number)
)
const amounts = Effect.map(ledger, (rows) => rows.map(({ amount }) => amount))

it.scoped("the verification pass waits while the second provider fails, as long as it is patient", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  return Effect.gen(function* () {
    const turn = yield* lostReceipts(first)
    other.intercept = (batch) => {
      other.failure = batch.some(({ method }) => method === "eth_getLogs") ? "timeout" : undefined
    }
    const passed = (patient: boolean) =>
      turn((watch, provider) => verificationPass(watch, provider, undefined, patient))
    // When the second provider fails, and during the cooldown after that.
    for (let i = 0; i < 2; i++) {
      expect(yield* passed(true)).toBe("waits")
      expect([yield* verified, yield* amounts]).toEqual([0, []])
    }
    // What the serving provider reads alone is stored but not verified: it is read again with another one.
    expect(yield* passed(false)).toBe("done")
    expect([yield* verified, yield* amounts]).toEqual([0, ["5"]])
    other.intercept = () => {
      other.failure = undefined
    }
    yield* pass("1 minute")
    expect(yield* passed(true)).toBe("done")
    expect([yield* verified, yield* amounts]).toEqual([19, ["5"]])
  }).pipe(aroundTwo(first, other))
})

it.scoped(
  "after a start, a missing second provider is waited for ten minutes; blocks read without it are read again later",
  () => {
    const first = new ModelChain(10)
    const other = first.twin()
    const settings = { ...withTwo, pollInterval: Duration.seconds(20) }
    const started = Effect.gen(function* () {
      const writer = yield* Writer
      yield* watch
      yield* pass("1 minute")
      expect(yield* amounts).toEqual(["5"])
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts")))
      yield* pass("8 minutes")
      expect([yield* verified, yield* amounts]).toEqual([0, []])
      yield* pass("2 minutes")
      expect([yield* verified, yield* amounts]).toEqual([0, ["5"]])
      other.failure = undefined
      yield* pass("2 minutes")
      expect(yield* verified).toBe(28)
    })
    return Effect.flatMap(temporaryDatabase, (path) => {
      const rpc = modelRpc({ "model:first": first, "model:second": other })
      const daemon = Layer.fresh(world(path, [settings], rpc, notingSettlement))
      return Effect.gen(function* () {
        yield* Effect.scoped(Effect.provide(watchedPayment(alice), daemon))
        other.failure = "unreachable"
        first.mine(token(usdc, alice, 5n))
        first.mineMany(29)
        yield* Effect.scoped(Effect.provide(started, daemon))
      })
    })
  }
)
