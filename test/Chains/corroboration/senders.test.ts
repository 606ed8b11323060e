import { describe, expect } from "@effect/vitest"
import { rows } from "../../lib/rows.ts"
import { payer } from "../../sim/transactions.ts"
import { alice, next, upTo, usdc, watchedPayment } from "../around.ts"
import { coin, type ModelChain, token } from "../ModelChain.ts"
import { corroborated, openScene } from "./scene.ts"

const senders = rows<{ sender: string | null }>("SELECT sender FROM receipts ORDER BY position")

/** In every response of this node the payer is another address. */
const renamingPayer = (chain: ModelChain) => {
  chain.distort = (_, answer) =>
    answer === null ? null : JSON.parse(JSON.stringify(answer).replaceAll(payer.slice(2), "66".repeat(20)))
}

const two = { nodes: 2 }

describe("who sent money", () => {
  openScene("is what two providers report of a token's log and of a transaction", two, function* (first) {
    yield* watchedPayment(alice)
    yield* next(first, token(usdc, alice, 5n), coin(alice, 6n))
    for (let i = 0; i < 4; i++) yield* next(first)
    yield* upTo(15)
    expect(yield* corroborated).toEqual([1, 1])
    expect(yield* senders).toEqual([{ sender: payer }, { sender: payer }])
  })

  for (const who of ["the one that reports it", "the other one"]) {
    openScene(`is unknown where ${who} reports another sender, and the money counts`, two, function* (first, other) {
      renamingPayer(who === "the other one" ? other : first)
      yield* watchedPayment(alice)
      yield* next(first, token(usdc, alice, 5n), coin(alice, 6n))
      for (let i = 0; i < 4; i++) yield* next(first)
      yield* upTo(15)
      expect(yield* corroborated).toEqual([1, 1])
      expect(yield* senders).toEqual([{ sender: null }, { sender: null }])
    })
  }
})
