import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { verificationPass } from "../../../src/Chains/corroboration/verificationPass.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { Chains } from "../../../src/Chains.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import {
  alice,
  around,
  aroundSome,
  aroundTwo,
  health,
  lostReceipts,
  readTo,
  second,
  upTo,
  usdc,
  watchedPayment
} from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { ledger } from "../world.ts"

it.scoped("the verification pass makes orphaned receipts count again that are on the chain", () => {
  const chain = new ModelChain(10)
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    chain.mine(token(usdc, alice, 5n))
    yield* readTo(11)
    const writer = yield* Writer
    yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE receipts SET canonical = 0")))
    chain.mineMany(30)
    // Tags, and the verification pass with them, run at their own interval.
    for (let i = 0; i < 70; i++) yield* second
    yield* upTo(41)
    expect((yield* ledger).map(({ amount, canonical }) => [amount, canonical])).toEqual([["5", 1]])
  }).pipe(around(chain))
})

it.scoped("what the first provider left out is found also when the second one serves by then", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  first.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    first.mine(token(usdc, alice, 5n))
    yield* readTo(11)
    first.failure = "unreachable"
    first.mine()
    yield* readTo(12)
    // It is healthy again, and is asked in addition to the serving one.
    first.failure = undefined
    first.mineMany(29)
    for (let i = 0; i < 70; i++) yield* second
    yield* upTo(41)
    expect((yield* ledger).map(({ amount, canonical }) => [amount, canonical])).toEqual([["5", 1]])
  }).pipe(aroundTwo(first, other))
})

it.scoped("what the first provider left out is found by one that takes fewer blocks at once", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  first.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
  const widths: Array<number> = []
  other.intercept = (batch) => {
    const asked = batch.flatMap(({ method, params: [filter] }) => {
      const { fromBlock, toBlock } = (filter ?? {}) as { readonly fromBlock?: string; readonly toBlock?: string }
      return method === "eth_getLogs" && toBlock !== undefined ? [Number(toBlock) - Number(fromBlock) + 1] : []
    })
    widths.push(...asked)
    other.failure = asked.some((blocks) => blocks > 3) ? "range" : undefined
  }
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    first.mine(token(usdc, alice, 5n))
    first.mineMany(30)
    for (let i = 0; i < 100; i++) yield* second
    yield* upTo(41)
    expect(Math.max(...widths)).toBeGreaterThan(3)
    expect((yield* ledger).map(({ amount, canonical }) => [amount, canonical])).toEqual([["5", 1]])
  }).pipe(aroundTwo(first, other))
})

it.scoped("a receipt that was left out is found in any of many blocks that become final at once", () => {
  const chain = new ModelChain(10)
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    chain.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
    // Three times the block range.
    for (const amount of [1n, 2n, 3n]) {
      chain.mineMany(99)
      chain.mine(token(usdc, alice, amount))
    }
    chain.mineMany(40)
    yield* Effect.raceFirst(upTo(350), Effect.forever(second))
    expect(yield* ledger).toEqual([])
    chain.distort = (_, answer) => answer
    for (let i = 0; i < 70; i++) yield* second
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["1", "2", "3"])
  }).pipe(around(chain))
})

/** An invented transfer, without its block. */
const transferTo = (address: string) => ({
  address: usdc,
  topics: [transferTopic, `0x${"9".repeat(64)}`, `0x${address.slice(2).toLowerCase().padStart(64, "0")}`],
  data: `0x${"5".padStart(64, "0")}`,
  transactionHash: `0x${"3".repeat(64)}`,
  logIndex: "0x9",
  removed: false
})

/** A minute in which blocks are mined and the verification pass is due. */
const aMinute = (chain: ModelChain) =>
  Effect.gen(function* () {
    yield* watchedPayment(alice)
    chain.mineMany(31)
    let healthy = true
    for (let i = 0; i < 70; i++) {
      yield* second
      const [provider, other] = (yield* health)?.providers ?? []
      expect(provider?.healthy).toBe(true)
      healthy &&= other?.healthy === true
    }
    return healthy
  })

it.scoped("a second provider that fails gets a cooldown, and the serving one does not", () => {
  const first = new ModelChain(10)
  const other = first.twin()
  // Once the chain is known.
  other.intercept = () => {
    other.failure = first.height > 10 ? "timeout" : undefined
  }
  return Effect.map(aMinute(first), (healthy) => expect(healthy).toBe(false)).pipe(aroundTwo(first, other))
})

/** A node that has another block 12, with a transfer in it. */
const withStranger = (other: ModelChain) => {
  const blockHash = `0x${"7".repeat(64)}`
  other.distort = ({ method, params }, answer) => {
    if (method === "eth_getBlockByNumber" && params[0] === "0xc") return { ...(answer as object), hash: blockHash }
    if (method !== "eth_getLogs") return answer
    const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string }
    if (Number(fromBlock) > 12 || Number(toBlock) < 12) return answer
    return [...(answer as ReadonlyArray<unknown>), { ...transferTo(alice), blockNumber: "0xc", blockHash }]
  }
}

const verified = Effect.flatMap(Reader, (reader) =>
  Effect.map(reader.get<{ number: number }>("SELECT verified_number AS number FROM scans"), (row) => row?.number)
)

it.scoped(
  "two providers that disagree about a final block stay healthy, and the pass stays below it, with an alarm",
  () => {
    const first = new ModelChain(10)
    const other = first.twin()
    withStranger(other)
    return Effect.gen(function* () {
      expect(yield* aMinute(first)).toBe(true)
      expect((yield* health)?.reason).toContain("disagree about the final block 12")
      expect((yield* ledger).length).toBe(0)
      expect(yield* verified).toBeLessThan(12)
      other.distort = (_, answer) => answer
      for (let i = 0; i < 70; i++) yield* second
      expect((yield* health)?.reason).toBeUndefined()
      expect(yield* verified).toBeGreaterThan(12)
    }).pipe(aroundTwo(first, other))
  }
)

it.scoped.each(["second", "third"])(
  "of three providers, the %s that alone has another final block gets a cooldown and delays nothing",
  (liar) => {
    const first = new ModelChain(10)
    const others = { second: first.twin(), third: first.twin() }
    withStranger(liar === "second" ? others.second : others.third)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      first.mineMany(31)
      const healthy = new Set<string>()
      for (let i = 0; i < 70; i++) {
        yield* second
        const hosts = (yield* health)?.providers ?? []
        for (const [n, provider] of hosts.entries())
          if (!provider.healthy) healthy.add(["first", "second", "third"][n] ?? "")
      }
      expect([...healthy]).toEqual([liar])
      expect(yield* ledger).toEqual([])
      expect(yield* verified).toBeGreaterThan(12)
    }).pipe(aroundSome([first, others.second, others.third]))
  }
)

it.scoped(
  "a provider that reported a log in another block, but has the same final block as the other one, stays healthy",
  () => {
    const first = new ModelChain(10)
    const other = first.twin()
    withStranger(other)
    const { distort } = other
    // Its headers are right: one of the nodes behind it was wrong.
    other.distort = (request, answer) => (request.method === "eth_getLogs" ? distort(request, answer) : answer)
    return Effect.gen(function* () {
      expect(yield* aMinute(first)).toBe(true)
      expect((yield* health)?.reason).toContain("inconsistent")
      expect(yield* ledger).toEqual([])
      expect(yield* verified).toBeLessThan(12)
      other.distort = (_, answer) => answer
      for (let i = 0; i < 70; i++) yield* second
      expect((yield* health)?.reason).toBeUndefined()
      expect(yield* verified).toBeGreaterThan(12)
    }).pipe(aroundTwo(first, other))
  }
)

describe("what the verification pass finds", () => {
  it.scoped.each<[number, number]>([
    [12, 0],
    [13, 1]
  ])("is corroborated by a provider whose own head gives the confirmations: at %d, %d", ([shown, corroborated]) => {
    const first = new ModelChain(10)
    const other = first.twin()
    other.distort = ({ method, params: [of] }, answer) => {
      const block = first.blocks[shown]
      if (method !== "eth_getBlockByNumber" || of !== "latest" || block === undefined) return answer
      return { ...(answer as object), number: `0x${shown.toString(16)}`, hash: block.hash }
    }
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      first.mine(token(usdc, alice, 5n))
      first.mineMany(20)
      yield* readTo(31)
      yield* (yield* Writer).write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE receipts SET corroborated = 0")))
      const { exclusively } = yield* Chains
      const turn = exclusively({ chain: "ethereum", mode: "test" })
      yield* turn((watch, provider) => verificationPass(watch, provider, undefined, false))
      const reader = yield* Reader
      expect(yield* reader.all("SELECT amount, corroborated FROM receipts")).toEqual([{ amount: "5", corroborated }])
    }).pipe(aroundTwo(first, other))
  })

  it.scoped("is stored at once, with the branch as it was", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const turn = yield* lostReceipts(chain)
      yield* turn((watch, provider) => verificationPass(watch, provider, undefined, false))
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
    }).pipe(around(chain))
  })

  it.scoped("on another branch than the one that was read is ignored until the reorg has been seen", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const turn = yield* lostReceipts(chain)
      chain.rollback(21)
      chain.mine(token(usdc, alice, 6n))
      chain.mineMany(21)
      const error = yield* Effect.flip(turn((watch, provider) => verificationPass(watch, provider, undefined, false)))
      expect(error).toMatchObject({ reason: "inconsistent", detail: expect.stringContaining("block 31") })
      expect(yield* ledger).toEqual([])
    }).pipe(around(chain))
  })

  it.scoped("is not stored when the scan has moved meanwhile", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const turn = yield* lostReceipts(chain)
      const reader = yield* Reader
      const verified = "SELECT verified_number FROM scans"
      const before = yield* reader.get(verified)
      yield* turn((watch, provider) => {
        const moved = Ledger.moveScan(watch.network, { number: 31, hash: "0xother", time: 310 })
        const writer: typeof watch.writer = {
          ...watch.writer,
          write: (command) => watch.writer.write(Effect.zipRight(moved, command))
        }
        return verificationPass({ ...watch, writer }, provider, undefined, false)
      })
      expect(yield* ledger).toEqual([])
      expect(yield* reader.get(verified)).toEqual(before)
    }).pipe(around(chain))
  })
})

it.scoped(
  "a receipt that one provider invents in a block of the chain is refuted by two, even though the pass found it",
  () => {
    const first = new ModelChain(10)
    const other = first.twin()
    other.distort = ({ method, params }, answer) => {
      if (method !== "eth_getLogs") return answer
      const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string }
      if (Number(fromBlock) > 12 || Number(toBlock) < 12) return answer
      const blockHash = first.blocks[12]?.hash
      return [...(answer as ReadonlyArray<unknown>), { ...transferTo(alice), blockNumber: "0xc", blockHash }]
    }
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      first.mineMany(31)
      for (let i = 0; i < 70; i++) yield* second
      yield* upTo(41)
      const reader = yield* Reader
      expect(yield* reader.all("SELECT canonical, refuted, corroborated FROM receipts")).toEqual([
        { canonical: 0, refuted: 1, corroborated: 0 }
      ])
    }).pipe(aroundTwo(first, other))
  }
)
