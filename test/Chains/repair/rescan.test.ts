import { describe, expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { rescan } from "../../../src/Chains/repair/rescan.ts"
import { eventLoopTurn } from "../../../src/lib/waiting.ts"
import { change, rows } from "../../lib/rows.ts"
import { alice, next, readTo, second, upTo, usdc, watchedPayment } from "../around.ts"
import { openScene, scene } from "../corroboration/scene.ts"
import { type ModelChain, token } from "../ModelChain.ts"
import { committedTo, ledger, paymentById, until, watch } from "../world.ts"
import { exclusively, rescanFrom, start } from "./repairing.ts"

const one = { nodes: 1 }
const amounts = Effect.map(ledger, (all) => all.map(({ amount }) => amount))
const forgotten = change("DELETE FROM receipts")

/** Block 11 has paid alice, and the ledger has lost it. */
const lost = (chain: ModelChain) =>
  Effect.gen(function* () {
    yield* watchedPayment(alice)
    yield* next(chain, token(usdc, alice, 5n))
    yield* next(chain)
    yield* forgotten
  })

/** The node gives another hash for block 12, once, as soon as `when` holds. */
const replacing = (chain: ModelChain, when: (method: string) => boolean) => {
  let [isDue, lies] = [false, 1]
  chain.distort = ({ method, params: [number] }, answer) => {
    isDue ||= when(method)
    return isDue && number === "0xc" && lies-- > 0 ? { ...(answer as object), hash: `0x${"1".repeat(64)}` } : answer
  }
  return until(
    Effect.sync(() => lies),
    (left) => left <= 0
  )
}

describe("a rescan", () => {
  for (const [title, when] of [
    ["from a provider on another branch than the scanned one", () => true],
    ["of blocks that were replaced while it read them", (method: string) => method === "eth_getLogs"]
  ] as const) {
    openScene(`stores nothing ${title}, and tries again`, one, function* (chain) {
      yield* lost(chain)
      const lied = replacing(chain, when)
      const repaired = yield* Effect.fork(rescanFrom(11, 11))
      yield* lied
      yield* Effect.repeatN(eventLoopTurn, 50)
      expect(yield* ledger).toEqual([])
      expect(yield* Effect.raceFirst(Fiber.join(repaired), Effect.forever(second))).toMatchObject({ added: 1 })
      expect(yield* amounts).toEqual(["5"])
    })
  }

  openScene("stores nothing of a block that is stored under another hash", one, function* (chain) {
    yield* lost(chain)
    yield* change("UPDATE blocks SET hash = '0xother' WHERE number = 11")
    const refused = Effect.flip(rescanFrom(11, 11))
    expect((yield* Effect.raceFirst(refused, Effect.forever(second))).message).toContain(
      "the blocks that were read are not those of the chain that is stored"
    )
    expect(yield* ledger).toEqual([])
  })

  openScene("with one of two providers stores receipts as uncorroborated", { nodes: 2 }, function* (chain) {
    yield* lost(chain)
    expect((yield* rescanFrom(11)).added).toBe(1)
    expect(yield* rows("SELECT corroborated FROM receipts")).toEqual([{ corroborated: 0 }])
  })

  openScene("makes a refuted receipt count again until it is judged again", { nodes: 2 }, function* (chain) {
    yield* watchedPayment(alice)
    yield* next(chain, token(usdc, alice, 5n))
    yield* change("UPDATE receipts SET canonical = 0, refuted = 1, denied_by = 'liar'")
    expect((yield* rescanFrom(11)).added).toBe(1)
    expect(yield* rows("SELECT canonical, refuted, denied_by FROM receipts")).toEqual([
      { canonical: 1, refuted: 0, denied_by: null }
    ])
  })

  openScene("continues in smaller parts where a provider refuses large ones", one, function* (chain) {
    yield* watchedPayment(alice)
    for (let n = 11; n <= 72; n++) chain.mine(token(usdc, alice, 5n))
    yield* readTo(72)
    yield* forgotten
    chain.intercept = (batch) => {
      const [call] = batch
      const { fromBlock, toBlock } = (call?.method === "eth_getLogs" ? call.params[0] : {}) as Record<string, string>
      chain.failure = Number(toBlock) - Number(fromBlock) > 20 ? "refused" : undefined
    }
    const done = yield* Effect.raceFirst(rescanFrom(1), Effect.forever(second))
    expect(done).toMatchObject({ through: 72, to: 72, receipts: 62, added: 62 })
  })

  openScene("is refused for blocks that have not been scanned, and for an empty range", one, function* () {
    yield* watchedPayment(alice)
    const refusal = (from: number, to?: number) =>
      Effect.map(Effect.flip(rescanFrom(from, to)), ({ message }) => message)
    expect(yield* refusal(1, 11)).toContain("Block 11 of chains.ethereum.test has not been read yet")
    expect(yield* refusal(11)).toBe("Block 11 is above the last one to be read, 10")
    expect(yield* refusal(5, 4)).toBe("Block 5 is above the last one to be read, 4")
    expect(yield* rescanFrom(10, 10)).toMatchObject({ through: 10, added: 0 })
  })

  openScene("is refused for an empty range also while no address is watched", one, function* () {
    yield* Effect.zipRight(watch, committedTo(10))
    expect((yield* Effect.flip(rescanFrom(11))).message).toBe("Block 11 is above the last one to be read, 10")
    expect(yield* rescanFrom(10)).toMatchObject({ through: 10, added: 0 })
  })

  openScene("stops after its budget and returns how far it has come", one, function* (chain) {
    yield* watchedPayment(alice)
    chain.mineMany(350)
    yield* Effect.raceFirst(upTo(start + 350), Effect.forever(second))
    const turn = yield* exclusively
    const part = yield* rescan(turn, { from: 1 }, "0 seconds")
    expect(part).toEqual({ through: 100, to: start + 350, receipts: 0, added: 0 })
    expect(yield* rescan(turn, { from: 1 }, "1 minute")).toMatchObject({ through: start + 350 })
  })

  scene("settles the payments whose money it finds at once", one, function* (chain) {
    const { id } = yield* watchedPayment(alice, { currency: "USDC" })
    // Of this the first reading learns nothing.
    chain.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
    yield* next(chain, token(usdc, alice, 40n))
    yield* next(chain)
    chain.distort = (_, answer) => answer
    expect((yield* paymentById(id))?.status).toBe("pending")
    expect((yield* rescanFrom(start + 1)).added).toBe(1)
    expect(yield* paymentById(id)).toMatchObject({ status: "detecting", amountReceived: 40n })
  })
})
