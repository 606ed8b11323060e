import { expect, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { secondPass } from "../../src/Chains/secondPass.ts"
import { Chains } from "../../src/Chains.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { alice, aroundTwo, readTo, usdc, watchedPayment, withTwo } from "./around.ts"
import { ModelChain, modelRpc, token } from "./ModelChain.ts"
import { ledger, notingSettlement, pass, watch, world } from "./world.ts"

const verified = Effect.flatMap(Reader, (reader) =>
  Effect.map(reader.get<{ number: number }>("SELECT verified_number AS number FROM scans"), (row) => row?.number)
)
const amounts = Effect.map(ledger, (rows) => rows.map(({ amount }) => amount))

/** Blocks that are final, up to 19, and have not been read again; the ledger has lost what they paid. */
const lost = (chain: ModelChain) =>
  Effect.gen(function* () {
    yield* watchedPayment(alice)
    chain.mine(token(usdc, alice, 5n))
    chain.mineMany(20)
    yield* readTo(31)
    const writer = yield* Writer
    yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts")))
  })

it.scoped("the second pass waits while the second provider fails, as long as it has patience", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  return Effect.gen(function* () {
    yield* lost(first)
    other.intercept = (batch) => {
      other.failure = batch.some(({ method }) => method === "eth_getLogs") ? "timeout" : undefined
    }
    const chains = yield* Chains
    const turn = chains.exclusively({ chain: "ethereum", mode: "test" })
    const passed = (patient: boolean) => turn((watch, provider) => secondPass(watch, provider, undefined, patient))
    // When it fails, and while it is put aside for that.
    for (let i = 0; i < 2; i++) {
      expect(yield* passed(true)).toBe("waits")
      expect([yield* verified, yield* amounts]).toEqual([0, []])
    }
    expect(yield* passed(false)).toBe("done")
    expect([yield* verified, yield* amounts]).toEqual([19, ["5"]])
  }).pipe(aroundTwo(first, other))
})

it.scoped("a second provider that is gone is waited for ten minutes from a start on, and no longer", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  const settings = { ...withTwo, pollInterval: Duration.seconds(20) }
  const started = Effect.gen(function* () {
    yield* watch
    yield* pass("9 minutes")
    expect(yield* verified).toBe(0)
    yield* pass("2 minutes")
    expect(yield* verified).toBe(28)
  })
  return Effect.flatMap(temporaryDatabase, (path) => {
    const rpc = modelRpc({ "model:first": first, "model:second": other })
    const daemon = Layer.fresh(world(path, [settings], rpc, notingSettlement))
    return Effect.gen(function* () {
      yield* Effect.scoped(Effect.provide(watchedPayment(alice), daemon))
      other.failure = "unreachable"
      first.mineMany(30)
      yield* Effect.scoped(Effect.provide(started, daemon))
    })
  })
})
