import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { Reader } from "../../../src/Sql.ts"
import {
  address,
  alice,
  aroundSomeReal,
  health,
  next,
  second,
  upTo,
  usdc,
  watchedPayment,
  withReceipts,
  withTokens
} from "../around.ts"
import { inventing, stateOf, untilOver, watchedUsdc, withFalseFinalHashes } from "../lying.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { ledger, pass, pay, scanned } from "../world.ts"

// A single provider out of two or three cannot decide anything about a payment.

describe("two providers, one of which invents a receipt", () => {
  it.scoped("row 2: a provider that also gives false hashes of final blocks decides nothing alone", () => {
    const liar = new ModelChain(10)
    // Only after the honest provider has been taken for inconsistent several times.
    inventing(liar, 62)
    withFalseFinalHashes(liar)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      liar.mineMany(4)
      for (let i = 0; i < 400; i++) {
        if (i % 5 === 0) liar.mine()
        yield* second
      }
      expect(yield* stateOf(id)).toBe("detecting 5")
    }).pipe(aroundSomeReal([liar, liar.twin()]))
  })

  it.scoped("row 2: a receipt that the other one denied is not decided alone once that one no longer responds", () => {
    const liar = new ModelChain(10)
    const honest = liar.twin()
    inventing(liar)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      liar.mineMany(5)
      yield* pass("15 minutes")
      expect(yield* stateOf(id)).toBe("detecting 5")
      honest.failure = "rate_limited"
      yield* pass("25 minutes")
      expect(yield* stateOf(id)).toBe("detecting 5")
    }).pipe(aroundSomeReal([liar, honest]))
  })
})

describe("three providers, one of which invents a receipt", () => {
  it.scoped.each([0, 1, 2])(
    "row 2: where provider %d invents it, two denials refute it, and real money counts",
    (place) => {
      const liar = new ModelChain(10)
      const nodes = [liar.twin(), liar.twin()]
      nodes.splice(place, 0, liar)
      inventing(liar)
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        liar.mineMany(20)
        for (let i = 0; i < 40; i++) yield* second
        expect(yield* stateOf(id)).toBe("pending")
        liar.mine(token(usdc, alice, 5n))
        liar.mineMany(3)
        for (let i = 0; i < 40; i++) yield* second
        expect(yield* stateOf(id)).toBe("confirmed 5")
      }).pipe(aroundSomeReal(nodes))
    }
  )
})

it.scoped("row 3: a second provider that responded between its failures is asked again after a second", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    const corroborated = Effect.flatMap(Reader, (reader) => reader.all("SELECT 1 FROM receipts WHERE corroborated = 1"))
    for (let round = 1; round <= 8; round++) {
      other.failure = "timeout"
      yield* next(first, token(usdc, alice, 5n))
      for (let i = 0; i < 3; i++) yield* next(first)
      other.failure = undefined
      for (let i = 0; i < 5; i++) yield* second
      expect(yield* corroborated).toHaveLength(round)
      expect((yield* health)?.providers[1]?.healthy).toBe(true)
    }
  }).pipe(aroundSomeReal([first, other]))
})

describe("silence of one provider out of two", () => {
  it.scoped(
    "row 4: a log that it withholds, with false hashes of final blocks, is found before the payment ends",
    () => {
      const liar = new ModelChain(10)
      liar.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
      withFalseFinalHashes(liar)
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        liar.mine(token(usdc, alice, 5n))
        yield* untilOver(liar)
        for (let i = 0; i < 30; i++) yield* second
        // One that gives another hash for the block corroborates nothing in it: the payment waits for a third, or a person.
        expect(yield* stateOf(id)).toBe("detecting 5")
      }).pipe(aroundSomeReal([liar, liar.twin()]))
    }
  )

  it.scoped("row 4: a log that it withholds is found where younger payments end at the same time", () => {
    const liar = new ModelChain(10)
    liar.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
    withFalseFinalHashes(liar)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      liar.mine(token(usdc, alice, 5n))
      liar.mineMany(9)
      yield* second
      yield* upTo(20)
      expect(yield* pay(address(2), { currency: "USDC" })).toMatchObject({ createdHead: 20 })
      yield* untilOver(liar)
      for (let i = 0; i < 30; i++) yield* second
      // One that gives another hash for the block corroborates nothing in it: the payment waits for a third, or a person.
      expect(yield* stateOf(id)).toBe("detecting 5")
    }).pipe(aroundSomeReal([liar, liar.twin()]))
  })

  it.scoped("row 4: coins that it withholds, balance and all, are found before the payment ends", () => {
    const liar = new ModelChain(10)
    const honest = liar.twin()
    withReceipts(honest)
    liar.distort = ({ method }, answer) => (method === "eth_getBalance" ? "0x0" : answer)
    return Effect.gen(function* () {
      const { expire } = yield* Settlement
      yield* Effect.forkScoped(expire)
      const { id } = yield* watchedPayment(alice, { chain: "base", amount: 5n })
      liar.mine(coin(alice, 5n))
      yield* untilOver(liar)
      for (let i = 0; i < 60; i++) yield* second
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }).pipe(aroundSomeReal([liar, honest], { ...withTokens, chain: "base" }))
  })

  it.scoped(
    "row 4: a payment does not end while the other one is gone, and ends once that one has no money for it either",
    () => {
      const first = new ModelChain(10)
      const other = first.twin()
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        other.failure = "unreachable"
        yield* untilOver(first)
        expect(yield* stateOf(id)).toBe("pending")
        other.failure = undefined
        for (let i = 0; i < 30; i++) yield* second
        expect(yield* stateOf(id)).toBe("expired")
      }).pipe(aroundSomeReal([first, other]))
    }
  )

  it.scoped("row 4: where the other one stays gone, a payment ends after ten minutes", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      other.failure = "unreachable"
      yield* untilOver(first)
      // Its grace ends at second 3,760 of the clock; the chain is 100 seconds ahead of it. Here it is half a minute before ten
      // minutes after that.
      yield* pass("4270 seconds")
      expect(yield* stateOf(id)).toBe("pending")
      yield* pass("3 minutes")
      expect(yield* stateOf(id)).toBe("expired")
    }).pipe(aroundSomeReal([first, other], { ...withTokens, pollInterval: Duration.seconds(30) }))
  })

  it.scoped("row 4: a branch and a tag of one provider undo no confirmed payment that the other one still has", () => {
    const liar = new ModelChain(10)
    return Effect.gen(function* () {
      const honest = new ModelChain(-1, [...liar.blocks])
      const nodes = [liar, honest]
      yield* Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        const paid = liar.mine(token(usdc, alice, 5n))
        liar.mineMany(2)
        honest.blocks.push(...liar.blocks.slice(11))
        for (let i = 0; i < 5; i++) yield* second
        expect(yield* stateOf(id)).toBe("confirmed 5")
        // Another payment is still open, so that the chain is polled as often.
        yield* pay(address(2), { currency: "USDC" })
        liar.rollback(3)
        liar.mineMany(4)
        honest.mine()
        yield* second
        yield* upTo(14)
        // Longer than the patience for a silent provider.
        for (let i = 0; i < 140; i++) {
          liar.mine()
          honest.mine()
          liar.finalized = liar.height - 5
          yield* pass("5 seconds")
        }
        expect((yield* scanned)?.head_hash).toBe(liar.blocks.at(-1)?.hash)
        expect((yield* ledger).map(({ block_hash, canonical }) => [block_hash, canonical])).toEqual([[paid.hash, 0]])
        expect(yield* stateOf(id)).toBe("confirmed 5")
      }).pipe(aroundSomeReal(nodes))
    })
  })
})

describe("two providers that number the logs of a block differently", () => {
  const renumbered = (chain: ModelChain, by: number, twice: boolean) => {
    const all = (logs: ReadonlyArray<{ logIndex: string }>) =>
      logs.flatMap((log) => {
        const at = (n: number) => ({ ...log, logIndex: `0x${(2 * Number(log.logIndex) + n).toString(16)}` })
        return twice ? [at(by), at(by + 1)] : [at(by)]
      })
    chain.distort = ({ method }, answer) => {
      if (method === "eth_getLogs") return all(answer as ReadonlyArray<{ logIndex: string }>)
      if (method !== "eth_getTransactionReceipt" || answer === null) return answer
      const receipt = answer as { logs: ReadonlyArray<{ logIndex: string }> }
      return { ...receipt, logs: all(receipt.logs) }
    }
  }

  it.scoped.each<[string, boolean, bigint]>([
    ["one log is one transfer", false, 5n],
    ["two equal logs of one transaction are two transfers", true, 10n]
  ])("row 5: %s, also when the verification pass has read both", ([, twice, received]) => {
    const first = new ModelChain(10)
    const other = first.twin()
    renumbered(first, 0, twice)
    renumbered(other, 7, twice)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc(received)
      first.mine(token(usdc, alice, 5n))
      first.mineMany(31)
      for (let i = 0; i < 80; i++) yield* second
      expect(yield* stateOf(id)).toBe(`confirmed ${received}`)
      expect(yield* ledger).toHaveLength(twice ? 2 : 1)
      const reader = yield* Reader
      expect(yield* reader.all("SELECT kind FROM exceptions")).toEqual([])
    }).pipe(aroundSomeReal([first, other]))
  })
})
