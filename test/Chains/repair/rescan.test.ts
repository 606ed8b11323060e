import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { rescan } from "../../../src/Chains/repair/rescan.ts"
import { eventLoopTurn } from "../../../src/Sql/eventLoopTurn.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { alice, around, aroundReal, second, upTo, usdc } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { pay, paymentById, until, watch } from "../world.ts"
import { damage, exclusively, paid, rescanFrom, rows, start } from "./repairing.ts"

describe("a rescan", () => {
  it.scoped("settles the payments whose money it finds at once", () => {
    const chain = new ModelChain(start)
    return Effect.gen(function* () {
      const { id } = yield* pay(alice, { currency: "USDC" })
      yield* watch
      yield* upTo(start)
      // Of this the first reading learns nothing.
      chain.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
      chain.mine(token(usdc, alice, 40n))
      chain.mine()
      yield* Effect.raceFirst(upTo(start + 2), Effect.forever(second))
      chain.distort = (_, answer) => answer
      expect((yield* paymentById(id))?.status).toBe("pending")
      expect((yield* rescanFrom(start + 1)).added).toBe(1)
      expect(yield* paymentById(id)).toMatchObject({ status: "detecting", amountReceived: 40n })
    }).pipe(aroundReal(chain))
  })

  it.scoped("stores nothing from a provider on another branch than the scanned one, and retries", () => {
    const chain = new ModelChain(start)
    return Effect.gen(function* () {
      yield* paid(chain, token(usdc, alice, 7n))
      yield* damage(["drop"])
      let lies = 1
      chain.distort = ({ params: [number] }, answer) =>
        number === `0x${(start + 2).toString(16)}` && lies-- > 0
          ? { ...(answer as object), hash: `0x${"1".repeat(64)}` }
          : answer
      const repaired = yield* Effect.fork(rescanFrom(start + 1, start + 1))
      yield* until(
        Effect.sync(() => lies),
        (left) => left <= 0
      )
      yield* Effect.repeatN(eventLoopTurn, 50)
      expect(yield* rows).toEqual([])
      const { added } = yield* Effect.raceFirst(Fiber.join(repaired), Effect.forever(second))
      expect(added).toBe(1)
    }).pipe(around(chain))
  })

  it.scoped("stores nothing of a block that is stored under another hash", () => {
    const chain = new ModelChain(start)
    return Effect.gen(function* () {
      yield* paid(chain, token(usdc, alice, 7n))
      yield* damage(["drop"])
      const writer = yield* Writer
      const number = start + 1
      yield* writer.write(
        Effect.flatMap(Tx, (tx) => tx.run("UPDATE blocks SET hash = '0xother' WHERE number = ?", [number]))
      )
      const refused = Effect.flip(rescanFrom(number, number))
      expect((yield* Effect.raceFirst(refused, Effect.forever(second))).message).toContain(
        "the blocks that were read are not those of the chain that is stored"
      )
      expect(yield* rows).toEqual([])
    }).pipe(around(chain))
  })

  it.scoped("stops after its budget and returns how far it has come", () => {
    const chain = new ModelChain(start + 350)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      yield* upTo(start + 350)
      const turn = yield* exclusively
      const part = yield* rescan(turn, { from: 1 }, "0 seconds")
      expect(part).toEqual({ through: 100, to: start + 350, receipts: 0, added: 0 })
      expect(yield* rescan(turn, { from: 1 }, "1 minute")).toMatchObject({ through: start + 350 })
    }).pipe(around(chain))
  })
})
