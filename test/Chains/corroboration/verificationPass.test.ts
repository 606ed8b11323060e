import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { verificationPass } from "../../../src/Chains/corroboration/verificationPass.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Chains } from "../../../src/Chains.ts"
import { change, rows } from "../../lib/rows.ts"
import { alice, health, lostReceipts, readTo, second, upTo, usdc, watchedPayment } from "../around.ts"
import { type ModelChain, token } from "../ModelChain.ts"
import { ledger, pass } from "../world.ts"
import { corroborated, inventedLog, openScene, seconds, verified, withholdingLogs, withLogs } from "./scene.ts"

const strange = `0x${"7".repeat(64)}`
const one = { nodes: 1 }
const two = { nodes: 2 }
const amounts = Effect.map(ledger, (all) => all.map(({ amount }) => amount))
const canonical = Effect.map(ledger, (all) => all.map((row) => [row.amount, row.canonical]))

/** One call of the pass, as a turn between two ticks runs it. */
const passOnce = (patient = false) =>
  Effect.flatMap(Chains, ({ exclusively }) =>
    exclusively({ chain: "ethereum", mode: "test" })((watch, provider) =>
      verificationPass({ ...watch, providers: { ...watch.providers, decidesAlone: () => !patient } }, provider)
    )
  )

/** Others are said to deny what the third provider has reported. */
const contradictThird = Effect.flatMap(Chains, ({ exclusively }) =>
  exclusively({ chain: "ethereum", mode: "test" })(({ providers }) =>
    Effect.forEach(providers.all.slice(2), (third) => providers.contradicted(third, "the test says so"), {
      concurrency: 1
    })
  )
)

describe("the verification pass", () => {
  openScene("makes orphaned receipts count again that are on the chain", one, function* (chain) {
    yield* watchedPayment(alice)
    chain.mine(token(usdc, alice, 5n))
    yield* readTo(11)
    yield* change("UPDATE receipts SET canonical = 0")
    chain.mineMany(30)
    yield* seconds(70)
    yield* upTo(41)
    expect(yield* canonical).toEqual([["5", 1]])
  })

  openScene(
    "keeps up with a chain that is faster than one range at a time",
    { nodes: 2, settings: { chain: "base" } },
    function* (first) {
      yield* watchedPayment(alice, { chain: "base" })
      for (let i = 0; i < 100; i++) {
        first.mineMany(120)
        yield* second
      }
      yield* seconds(40)
      yield* upTo(first.height)
      expect(first.height - (yield* verified)).toBeLessThan(120 * 40)
    }
  )

  for (const [shown, corroborated] of [
    [12, 0],
    [13, 1]
  ] as const) {
    openScene(`corroborates by providers whose own head is deep enough: block ${shown}`, two, function* (first, other) {
      other.distort = ({ method, params: [of] }, answer) => {
        const block = first.blocks[shown]
        if (method !== "eth_getBlockByNumber" || of !== "latest" || block === undefined) return answer
        return { ...(answer as object), number: `0x${shown.toString(16)}`, hash: block.hash }
      }
      yield* watchedPayment(alice)
      first.mine(token(usdc, alice, 5n))
      first.mineMany(20)
      yield* readTo(31)
      yield* change("UPDATE receipts SET corroborated = 0")
      yield* passOnce()
      expect(yield* rows("SELECT amount, corroborated FROM receipts")).toEqual([{ amount: "5", corroborated }])
    })
  }

  openScene("ignores another branch than the one that was read until the reorg has been seen", one, function* (chain) {
    yield* lostReceipts(chain)
    chain.rollback(21)
    chain.mine(token(usdc, alice, 6n))
    chain.mineMany(21)
    expect(yield* Effect.flip(passOnce())).toMatchObject({
      reason: "inconsistent",
      detail: expect.stringContaining("block 31")
    })
    expect(yield* ledger).toEqual([])
  })

  openScene("corroborates at once what two providers report", two, function* (first) {
    yield* lostReceipts(first)
    yield* passOnce(true)
    expect(yield* corroborated).toEqual([1])
  })

  openScene("stores nothing when the scan has moved meanwhile", one, function* (chain) {
    const turn = yield* lostReceipts(chain)
    const before = yield* verified
    yield* turn((watch, provider) => {
      const moved = Ledger.moveScan(watch.network, { number: 31, hash: "0xother", time: 310 })
      const writer: typeof watch.writer = {
        ...watch.writer,
        write: (command) => watch.writer.write(Effect.zipRight(moved, command))
      }
      return verificationPass({ ...watch, writer }, provider, undefined)
    })
    expect([yield* ledger, yield* verified]).toEqual([[], before])
  })

  openScene("waits while the second provider fails, as long as it is patient", two, function* (first, other) {
    yield* lostReceipts(first)
    other.intercept = (batch) => {
      other.failure = batch.some(({ method }) => method === "eth_getLogs") ? "timeout" : undefined
    }
    // When the second provider fails, and during the cooldown after that.
    for (let i = 0; i < 2; i++) {
      expect(yield* passOnce(true)).toBe("waits")
      expect([yield* verified, yield* amounts]).toEqual([0, []])
    }
    // What the serving provider reads alone is stored but not verified: it is read again with another one.
    expect(yield* passOnce(false)).toBe("done")
    expect([yield* verified, yield* amounts]).toEqual([0, ["5"]])
    other.intercept = () => {
      other.failure = undefined
    }
    yield* pass("1 minute")
    expect(yield* passOnce(true)).toBe("done")
    expect([yield* verified, yield* amounts]).toEqual([19, ["5"]])
  })

  openScene("is not verified by a provider whose report a dispute leaves out", two, function* (first, other) {
    yield* lostReceipts(first)
    // The serving provider left out a log, and has another block there when it is asked for the first time.
    let asked = 0
    first.distort = ({ method, params: [number] }, answer) => {
      if (method === "eth_getLogs") return []
      return number === "0xb" && asked++ === 0 ? { ...(answer as object), hash: strange } : answer
    }
    expect(yield* passOnce(true)).toBe("waits")
    expect((yield* health)?.reason).toContain(`${other.client.host}`)
    expect([asked, yield* verified, yield* amounts]).toEqual([2, 0, []])
    expect(yield* passOnce(true)).toBe("done")
    expect([yield* verified, yield* amounts]).toEqual([19, ["5"]])
    expect((yield* health)?.reason).toBeUndefined()
  })

  openScene(
    "is not verified by a contradicted provider while the others left out a log or fail in this read",
    { nodes: 3 },
    function* (first, other, third) {
      yield* lostReceipts(first)
      yield* contradictThird
      withholdingLogs(first)
      withholdingLogs(third)
      other.intercept = (batch) => {
        other.failure = batch.some(({ method }) => method === "eth_getLogs") ? "timeout" : undefined
      }
      expect(yield* passOnce(true)).toBe("waits")
      expect(third.count("eth_getLogs")).toBeGreaterThan(0)
      expect([yield* verified, yield* amounts]).toEqual([0, []])
      other.intercept = () => {
        other.failure = undefined
      }
      yield* pass("1 minute")
      expect(yield* passOnce(true)).toBe("done")
      expect([yield* verified, yield* amounts]).toEqual([19, ["5"]])
    }
  )

  openScene("adds nothing that only a contradicted provider reports", { nodes: 3 }, function* (first, _, third) {
    yield* lostReceipts(first)
    yield* contradictThird
    withLogs(third, () => [inventedLog(first, 12, { amount: 9n })])
    expect(yield* passOnce(true)).toBe("done")
    expect([yield* verified, yield* amounts]).toEqual([19, ["5"]])
  })

  openScene("adds what one provider invents, which two then refute", two, function* (first, other) {
    withLogs(other, () => [inventedLog(first, 12)])
    yield* watchedPayment(alice)
    first.mineMany(31)
    yield* seconds(70)
    yield* upTo(41)
    expect(yield* rows("SELECT canonical, refuted, corroborated FROM receipts")).toEqual([
      { canonical: 0, refuted: 1, corroborated: 0 }
    ])
  })
})

/** A minute in which blocks are mined and the pass is due; returns the positions of the unhealthy providers. */
const aMinute = (chain: ModelChain) =>
  Effect.gen(function* () {
    yield* watchedPayment(alice)
    chain.mineMany(31)
    const unhealthy = new Set<number>()
    for (let i = 0; i < 70; i++) {
      yield* second
      for (const [place, { healthy }] of ((yield* health)?.providers ?? []).entries()) {
        if (!healthy) unhealthy.add(place)
      }
    }
    return [...unhealthy]
  })

/** A node that has another block 12, with a transfer in it. */
const withStranger = (node: ModelChain) => {
  node.distort = ({ method, params: [number] }, answer) =>
    method === "eth_getBlockByNumber" && number === "0xc" ? { ...(answer as object), hash: strange } : answer
  withLogs(node, () => [{ ...inventedLog(node, 12), blockHash: strange }])
}

/** A node that has the transfer of its block 12, and says that the block has another hash. */
const renamed = (node: ModelChain) => {
  const hash = node.blocks[12]?.hash
  node.distort = (_, answer) => JSON.parse(JSON.stringify(answer).replaceAll(hash ?? "", strange))
}

/** A payment that is paid in block 12, which is deep by now, and has not been read again. */
const paidIn12 = (chain: ModelChain) =>
  Effect.gen(function* () {
    yield* watchedPayment(alice)
    chain.mine()
    chain.mine(token(usdc, alice, 5n))
    chain.mineMany(19)
    yield* readTo(31)
    expect(yield* amounts).toEqual(["5"])
    expect(yield* verified).toBeLessThan(12)
  })

/** The pass goes on, and health names nothing any more, once the provider gives true answers. */
const settles = (other: ModelChain) =>
  Effect.gen(function* () {
    expect(yield* ledger).toEqual([])
    expect(yield* verified).toBeLessThan(12)
    other.distort = (_, answer) => answer
    yield* seconds(70)
    expect((yield* health)?.reason).toBeUndefined()
    expect(yield* verified).toBeGreaterThan(12)
  })

describe("deep blocks", () => {
  openScene("a second provider that fails gets a cooldown; the serving one does not", two, function* (first, other) {
    // Once the chain is known.
    other.intercept = () => {
      other.failure = first.height > 10 ? "timeout" : undefined
    }
    expect(yield* aMinute(first)).toEqual([1])
  })

  openScene("two that disagree stay healthy; the pass stays below, with an alarm", two, function* (first, other) {
    withStranger(other)
    expect(yield* aMinute(first)).toEqual([])
    expect((yield* health)?.reason).toContain("disagree about the deep block 12")
    yield* settles(other)
  })

  openScene("one with a log in another block, whose headers are right, stays healthy", two, function* (first, other) {
    // One of the nodes behind it was wrong.
    withLogs(other, () => [{ ...inventedLog(other, 12), blockHash: strange }])
    expect(yield* aMinute(first)).toEqual([])
    expect((yield* health)?.reason).toContain("inconsistent")
    yield* settles(other)
  })

  openScene(
    "money in a block that was read with another hash counts once, by an only provider",
    one,
    function* (chain) {
      yield* paidIn12(chain)
      renamed(chain)
      expect(yield* passOnce()).toBe("done")
      expect(yield* canonical).toEqual([["5", 1]])
    }
  )

  openScene("money in a block that was read with another hash takes two providers", two, function* (first, other) {
    yield* paidIn12(first)
    renamed(first)
    expect(yield* passOnce(true)).toBe("done")
    expect(yield* canonical).toEqual([["5", 1]])
    yield* change("UPDATE scans SET verified_number = 10")
    renamed(other)
    expect(yield* passOnce(true)).toBe("done")
    expect(yield* canonical).toEqual([
      ["5", 1],
      ["5", 1]
    ])
  })

  for (const place of [1, 2]) {
    openScene(
      `one of three, at ${place}, that alone has another gets a cooldown`,
      { nodes: 3, place },
      function* (liar) {
        withStranger(liar)
        expect(yield* aMinute(liar)).toEqual([place])
        expect(yield* ledger).toEqual([])
        expect(yield* verified).toBeGreaterThan(12)
      }
    )
  }
})
