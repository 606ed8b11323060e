import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, hourAfter, second, upTo, usdc, withTokens } from "../around.ts"
import { ModelChain, modelRpc, token } from "../ModelChain.ts"
import { committedTo, notingSettlement, pay, until, watch, world } from "../world.ts"

const numbers = Effect.flatMap(Reader, (reader) =>
  Effect.map(reader.all<{ number: number }>("SELECT number FROM blocks ORDER BY number"), (rows) =>
    rows.map(({ number }) => number)
  )
)

it.scoped("stored blocks that no reorg can reach are dropped, except those that a receipt or payment needs", () => {
  const chain = new ModelChain(30_000)
  const read = Effect.gen(function* () {
    yield* TestClock.setTime(hourAfter(chain))
    yield* pay(alice)
    yield* watch
    yield* committedTo(30_000)
    chain.mine(token(usdc, alice, 5n))
    yield* second
    yield* upTo(30_001)
    const before = yield* numbers
    const writer = yield* Writer
    // As if blocks had been read since block 1, including one with a receipt and one of a payment's creation.
    yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run(
          `INSERT INTO blocks (chain, mode, number, hash, time)
           WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 22000)
           SELECT 'ethereum', 'test', i, printf('0x%064x', i), i * 10 FROM n`
        )
        yield* tx.run("UPDATE receipts SET block_number = 5000")
        yield* tx.run("UPDATE payments SET created_head = 4990")
        yield* tx.run("UPDATE scans SET verified_number = 30000, finalized_number = 30000")
      })
    )
    return before
  })
  const again = Effect.fnUntraced(function* (before: ReadonlyArray<number>) {
    yield* watch
    yield* Effect.raceFirst(
      until(numbers, (left) => left.length <= 2 + 2002 + before.length),
      Effect.forever(second)
    )
    const left = yield* numbers
    expect(left.slice(0, 3)).toEqual([4990, 5000, 20_000])
    expect(left.slice(-before.length)).toEqual(before)
    expect(left.length).toBe(2 + 2001 + before.length)
  })
  return Effect.flatMap(temporaryDatabase, (path) => {
    const daemon = Layer.fresh(world(path, [withTokens], modelRpc({ "model:ethereum": chain }), notingSettlement))
    return Effect.flatMap(Effect.scoped(Effect.provide(read, daemon)), (before) =>
      Effect.scoped(Effect.provide(again(before), daemon))
    )
  })
})
