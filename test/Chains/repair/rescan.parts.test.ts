import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { rescan } from "../../../src/Chains/repair/rescan.ts"
import { Chains } from "../../../src/Chains.ts"
import { eventLoopTurn } from "../../../src/Sql/eventLoopTurn.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { alice, around, aroundTwo, next, readTo, second, usdc, watchedPayment } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { ledger, until } from "../world.ts"

const rescanned = (from: number, to?: number) =>
  Effect.flatMap(Chains, (chains) =>
    rescan(
      chains.exclusively({ chain: "ethereum", mode: "test" }),
      to === undefined ? { from } : { from, to },
      "1 minute"
    )
  )

/** The ledger has lost all receipts. */
const forgotten = Effect.flatMap(Writer, (writer) =>
  writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts")))
)

/** Block 11 has paid alice, and the ledger has lost it. */
const lost = (chain: ModelChain) =>
  Effect.gen(function* () {
    yield* watchedPayment(alice)
    yield* next(chain, token(usdc, alice, 5n))
    yield* next(chain)
    yield* forgotten
  })

describe("a rescan", () => {
  it.scoped("stores nothing of blocks that were replaced while it read them, and tries again", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* lost(chain)
      let read = false
      let lies = 1
      chain.distort = ({ method, params: [number] }, answer) => {
        read ||= method === "eth_getLogs"
        return read && number === "0xc" && lies-- > 0 ? { ...(answer as object), hash: `0x${"1".repeat(64)}` } : answer
      }
      const repaired = yield* Effect.fork(rescanned(11, 11))
      yield* until(
        Effect.sync(() => lies),
        (left) => left <= 0
      )
      yield* Effect.repeatN(eventLoopTurn, 50)
      expect(yield* ledger).toEqual([])
      expect(yield* Effect.raceFirst(Fiber.join(repaired), Effect.forever(second))).toMatchObject({ added: 1 })
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
    }).pipe(around(chain))
  })

  it.scoped("with one of two providers stores receipts as uncorroborated", () => {
    const chain = new ModelChain(10)
    const other = chain.twin()
    return Effect.gen(function* () {
      yield* lost(chain)
      expect((yield* rescanned(11)).added).toBe(1)
      const reader = yield* Reader
      expect(yield* reader.all("SELECT corroborated FROM receipts")).toEqual([{ corroborated: 0 }])
    }).pipe(aroundTwo(chain, other))
  })

  it.scoped("continues in smaller parts where a provider refuses large ones", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      for (let n = 11; n <= 72; n++) chain.mine(token(usdc, alice, 5n))
      yield* readTo(72)
      yield* forgotten
      chain.intercept = (batch) => {
        const [call] = batch
        const { fromBlock, toBlock } = (call?.method === "eth_getLogs" ? call.params[0] : {}) as Record<string, string>
        chain.failure = Number(toBlock) - Number(fromBlock) > 20 ? "refused" : undefined
      }
      const done = yield* Effect.raceFirst(rescanned(1), Effect.forever(second))
      expect(done).toMatchObject({ through: 72, to: 72, receipts: 62, added: 62 })
    }).pipe(around(chain))
  })

  it.scoped("is refused for blocks that have not been scanned, and for an empty range", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      const refusal = (from: number, to?: number) =>
        Effect.map(Effect.flip(rescanned(from, to)), ({ message }) => message)
      expect(yield* refusal(1, 11)).toContain("Block 11 of chains.ethereum.test has not been read yet")
      expect(yield* refusal(11)).toBe("Block 11 is above the last one to be read, 10")
      expect(yield* refusal(5, 4)).toBe("Block 5 is above the last one to be read, 4")
      expect(yield* rescanned(10, 10)).toMatchObject({ through: 10, added: 0 })
    }).pipe(around(chain))
  })
})
