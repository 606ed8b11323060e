import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { Reader } from "../../../src/Sql.ts"
import { alice, around, aroundTwo, next, readTo, second, usdc, watchedPayment, withTokens, withTwo } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { ledger, scanned, until } from "../world.ts"

const aroundBoth = (first: ModelChain, other: ModelChain, over: object = {}) =>
  aroundTwo(first, other, { ...withTwo, ...over })
const corroborated = Effect.flatMap(Reader, (reader) =>
  reader.all<{ tx_hash: string; corroborated: number; amount: string }>(
    "SELECT tx_hash, amount, corroborated FROM receipts ORDER BY block_number"
  )
)
/** Lets a second pass, after which everything has been read. */
const caughtUp = (chain: ModelChain) =>
  Effect.zipRight(
    second,
    until(scanned, (now) => now?.head_number === chain.height)
  )
const fakeLog = (chain: ModelChain, txHash: string) => {
  const block = chain.blocks.at(-1)
  return {
    address: usdc,
    topics: [transferTopic, `0x${"0".repeat(64)}`, `0x${"0".repeat(24)}${alice.slice(2).toLowerCase()}`],
    data: `0x${"64".padStart(64, "0")}`,
    blockNumber: `0x${block?.number.toString(16)}`,
    blockHash: block?.hash,
    transactionHash: txHash,
    logIndex: "0x7",
    removed: false
  }
}

describe("corroboration", () => {
  it.scoped("a receipt that a provider invented before its cooldown counts only if the healthy one has it", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    let lied = false
    first.distort = ({ method }, answer) => {
      if (method !== "eth_getLogs" || lied || first.height !== 11) return answer
      lied = true
      return [...(answer as Array<unknown>), fakeLog(first, `0x${"f".repeat(64)}`)]
    }
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      other.failure = "unreachable"
      yield* next(first)
      expect((yield* corroborated).map((r) => r.corroborated)).toEqual([0])
      first.failure = "unreachable"
      other.failure = undefined
      for (let i = 0; i < 6; i++) {
        first.mine()
        yield* second
        yield* second
      }
      yield* until(scanned, (s) => s?.head_number === first.height)
      yield* second
      yield* second
      expect((yield* corroborated).map((r) => r.corroborated)).toEqual([0])
    }).pipe(aroundBoth(first, other))
  })

  it.scoped("a log invented for a real transaction is not corroborated by its receipt", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    const real = coin(`0x${"8".repeat(40)}`, 1n)
    first.distort = ({ method }, answer) =>
      method === "eth_getLogs" && first.height === 11
        ? [...(answer as Array<unknown>), fakeLog(first, real.hash)]
        : answer
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* next(first, real)
      for (let i = 0; i < 6; i++) yield* next(first)
      expect((yield* corroborated).map((r) => r.corroborated)).toEqual([0])
    }).pipe(aroundBoth(first, other))
  })
})

describe("a reorg between two calls", () => {
  it.scoped(
    "catching up by logs notices that the scanned head was replaced before the end of the range was read",
    () => {
      const chain = new ModelChain(10)
      let armed = false
      const limit = (c: ModelChain) => {
        c.intercept = (batch) => {
          // After the scanned head was checked, before the header of the range's end is read.
          if (armed && batch[0]?.method === "eth_getBlockByNumber" && batch[0]?.params[0] === "0x7db") {
            armed = false
            c.rollback(c.height - 10)
            c.mineMany(2600)
          }
        }
      }
      limit(chain)
      return Effect.gen(function* () {
        yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
        const paid = token(usdc, alice, 5n)
        chain.mine(paid)
        yield* readTo(11)
        expect((yield* ledger).map((r) => r.canonical)).toEqual([1])
        // Far behind, so that one range does not reach the head.
        chain.mineMany(2500)
        armed = true
        yield* Effect.raceFirst(
          until(scanned, (s) => s?.head_number === chain.height && s.head_number > 2511),
          Effect.forever(second)
        )
        for (let i = 0; i < 3; i++) {
          chain.mine()
          yield* caughtUp(chain)
        }
        expect(chain.blocks.flatMap((b) => b.transactions).length).toBe(0)
        expect((yield* ledger).map((r) => r.canonical)).toEqual([0])
      }).pipe(around(chain, { ...withTokens, chain: "base" }))
    }
  )
})

describe("balance reconciliation", () => {
  it.scoped("balances are asked of another provider where the serving one refuses them", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    first.distort = ({ method }, answer) => (method === "eth_getBalance" ? "no such method" : answer)
    const checked = Effect.flatMap(Reader, (reader) =>
      reader.get<{ n: number | null }>("SELECT checked_number AS n FROM scans")
    )
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { chain: "base" })
      for (let i = 0; i < 40; i++) {
        first.mine()
        yield* caughtUp(first)
      }
      expect((yield* checked)?.n ?? 0).toBeGreaterThan(10)
    }).pipe(aroundBoth(first, other, { chain: "base" }))
  })
})

describe("the verification pass", () => {
  it.scoped(
    "keeps up where the chain is faster than one range at a time",
    () => {
      const first = new ModelChain(10)
      const other = first.twin()
      const verified = Effect.flatMap(Reader, (reader) =>
        reader.get<{ n: number }>("SELECT verified_number AS n FROM scans")
      )
      return Effect.gen(function* () {
        yield* watchedPayment(alice, { chain: "base" })
        for (let i = 0; i < 240; i++) {
          first.mineMany(120)
          yield* caughtUp(first)
        }
        for (let i = 0; i < 40; i++) {
          yield* second
        }
        yield* until(scanned, (s) => s?.head_number === first.height)
        expect(first.height - ((yield* verified)?.n ?? 0)).toBeLessThan(120 * 40)
      }).pipe(aroundBoth(first, other, { chain: "base" }))
    },
    60_000
  )
})
