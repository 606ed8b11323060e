import { expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import type { Transaction } from "../../sim/transactions.ts"
import { address, alice, health, usdc, watchedPayment } from "../around.ts"
import { stateOf, watchedUsdc } from "../lying.ts"
import { type ModelChain, token } from "../ModelChain.ts"
import { committedTo, pay, watch } from "../world.ts"
import { scene, seconds } from "./scene.ts"

// A serving provider with a branch of its own that is far above everyone's, with plausible block times: the others are
// asked for blocks that they do not have. That does not count as silence.

const ahead = 100
const cast = { nodes: 3, place: 0, apart: true, hosts: true, payments: { clockTolerance: Duration.minutes(15) } }

/** The liar's blocks above `fork()` have the times of the real ones that many blocks below. */
const withPlausibleTimes = (liar: ModelChain, fork: () => number) => {
  liar.distort = ({ method }, answer) => {
    if (method !== "eth_getBlockByNumber" || answer === null) return answer
    const block = answer as { number: string }
    const number = Number(block.number)
    return number <= fork()
      ? answer
      : { ...block, timestamp: `0x${(10 * Math.max(fork(), number - ahead)).toString(16)}` }
  }
}

/** Blocks that both have. */
const mineAlike = (
  liar: ModelChain,
  honest: ModelChain,
  count: number,
  at?: (n: number) => ReadonlyArray<Transaction>
) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) =>
      Effect.suspend(() => {
        liar.blocks.push(honest.mine(...(at?.(n) ?? [])))
        return seconds(10)
      }),
    { concurrency: 1, discard: true }
  )

/** From now on the liar has a separate, higher branch. */
const leave = (liar: ModelChain) => {
  liar.rollback(0)
  liar.mineMany(ahead)
}

/** Whether the second pass has just read the liar's blocks up to this number, or any below its newest where none is given. */
const watchingPass = (liar: ModelChain, upTo?: string) => {
  const seen = { pass: false }
  liar.intercept = (batch) => {
    const isPass = batch.some(({ method, params: [of] }) => {
      const { toBlock = "" } = (of ?? {}) as { readonly toBlock?: string }
      return method === "eth_getLogs" && (upTo === undefined ? Number(toBlock) < liar.height - 4 : toBlock === upTo)
    })
    if (isPass) seen.pass = true
  }
  return seen
}

for (const nodes of [2, 3]) {
  scene(
    `a liar of ${nodes} with a higher branch does not decide alone while the others answer`,
    { ...cast, nodes },
    function* (liar, honest) {
      let fork = Number.POSITIVE_INFINITY
      withPlausibleTimes(liar, () => fork)
      yield* seconds(100)
      const { id } = yield* watchedUsdc()
      yield* mineAlike(liar, honest, 30)
      fork = honest.height
      leave(liar)
      for (let i = 0; i < 72; i++) {
        liar.mine()
        honest.mine()
        yield* seconds(10)
        expect((yield* health)?.decidesAloneSeconds).toBeUndefined()
      }
      const seen = watchingPass(liar)
      for (let i = 0; i < 90; i++) {
        if (i % 10 === 0) for (const chain of [liar, honest]) chain.mine()
        if (seen.pass && liar.height < honest.height + ahead + 1) {
          liar.mine(token(usdc, alice, 5n))
          liar.mineMany(4)
        }
        yield* seconds(1)
      }
      expect(seen.pass).toBe(true)
      expect(yield* stateOf(id)).not.toContain("confirmed")
    }
  )
}

scene(
  "a liar of three with a higher branch undoes no payment that the others have confirmed",
  cast,
  function* (liar, honest) {
    let fork = Number.POSITIVE_INFINITY
    withPlausibleTimes(liar, () => fork)
    yield* seconds(100)
    yield* Effect.forkScoped((yield* Settlement).expire)
    const { id } = yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
    // The attacker's payment: keeps the chain polled each second.
    yield* pay(address(0xe71), { currency: "USDC", amount: 9n, expiresIn: 86_400_000 })
    yield* mineAlike(liar, honest, 30, (n) => (n === 4 ? [token(usdc, alice, 5n)] : []))
    fork = honest.height
    leave(liar)
    const seen = watchingPass(liar, "0x80")
    for (let i = 0; i < 900; i++) {
      if (i % 10 === 0) for (const chain of [liar, honest]) chain.mine()
      if (seen.pass && i > 690) {
        const { height } = liar
        fork = 13
        liar.rollback(height - 13)
        liar.mineMany(height - 13 + 1)
        break
      }
      seen.pass = false
      yield* seconds(1)
    }
    expect(fork).toBe(13)
    yield* seconds(6)
    expect(yield* stateOf(id)).toBe("confirmed 5")
  }
)

scene(
  "a higher branch that two others do not have is left before a payment ends, and what came on theirs counts",
  { ...cast, settings: { chain: "base" } },
  function* (liar, honest) {
    let fork = Number.POSITIVE_INFINITY
    withPlausibleTimes(liar, () => fork)
    yield* seconds(100)
    yield* Effect.forkScoped((yield* Settlement).expire)
    const inUsdc = { chain: "base", currency: "USDC", amount: 5n, expiresIn: 900_000 } as const
    const paid = yield* pay(alice, inUsdc)
    const unpaid = yield* pay(address(0xb0b), inUsdc)
    yield* watch
    yield* committedTo(10)
    yield* mineAlike(liar, honest, 30)
    fork = honest.height
    leave(liar)
    for (let i = 0; i < 270; i++) {
      liar.mine()
      honest.mine(...(i === 30 ? [token(usdc, alice, 5n)] : []))
      yield* seconds(10)
    }
    expect([yield* stateOf(paid.id), yield* stateOf(unpaid.id)]).toEqual(["confirmed 5", "expired"])
  }
)

scene(
  "a head of one of three far above the others', which then is gone, stops reading for two minutes at most",
  cast,
  function* (liar, honest) {
    let fork = Number.POSITIVE_INFINITY
    const time = 400 + 14 * 60
    liar.distort = ({ method }, answer) => {
      if (method !== "eth_getBlockByNumber" || answer === null) return answer
      const block = answer as { number: string }
      return Number(block.number) <= fork ? answer : { ...block, timestamp: `0x${time.toString(16)}` }
    }
    yield* seconds(100)
    const { id } = yield* watchedUsdc()
    yield* mineAlike(liar, honest, 30)
    fork = honest.height
    leave(liar)
    yield* seconds(2)
    liar.failure = "unreachable"
    for (let i = 0; i < 20; i++) {
      honest.mine(...(i === 3 ? [token(usdc, alice, 5n)] : []))
      yield* seconds(10)
    }
    expect(yield* stateOf(id)).toBe("confirmed 5")
  }
)
