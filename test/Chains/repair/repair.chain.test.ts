import { describe, expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { rescan } from "../../../src/Chains/repair/rescan.ts"
import { findSkippedTokens } from "../../../src/Chains/repair/skippedTokens.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { eventLoopTurn } from "../../../src/lib/waiting.ts"
import { change, rows } from "../../lib/rows.ts"
import { address, alice, next, readTo, second, upTo, usdc, watchedPayment } from "../around.ts"
import { openScene, scene } from "../corroboration/scene.ts"
import { coin, type ModelChain, token } from "../ModelChain.ts"
import { errorOf } from "../providing.ts"
import { committedTo, ledger, paymentById, until, watch } from "../world.ts"
import { rows as allRows, claimOf, damage, exclusively, paid, rescanFrom, start } from "./repairing.ts"

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

const inCoins = coin(alice, 7n)
const inTokens = token(usdc, alice, 7n)
const ledgerRows = Effect.map(ledger, (all) =>
  all.map(({ amount, canonical, position }) => [position, amount, canonical])
)

describe("a claim", () => {
  openScene("finds by its block's logs a transaction that has no receipt", one, function* (chain) {
    const sync = { ...inTokens, isStateSync: true }
    yield* watchedPayment(alice)
    yield* next(chain, sync, token(usdc, alice, 5n))
    yield* next(chain)
    yield* change("UPDATE receipts SET canonical = 0, refuted = 1 WHERE amount = '7'")
    expect(yield* claimOf(sync.hash)).toMatchObject({ added: 1, credits: [{ amount: 7n, currency: "USDC" }] })
    const standing = (yield* ledgerRows).map(([, amount, canonical]) => `${amount} ${canonical}`)
    expect(standing.sort()).toEqual(["5 1", "7 1"])
  })

  openScene("of a part of an unattributed receipt leaves the rest unchanged", one, function* (chain) {
    yield* paid(chain, inCoins)
    yield* damage(["forget"])
    yield* change("UPDATE receipts SET amount = '10'")
    yield* claimOf(inCoins.hash)
    yield* claimOf(inCoins.hash)
    expect(yield* ledgerRows).toEqual([
      ["tx:0", "7", 1],
      ["unattributed", "3", 1]
    ])
  })

  openScene("does not reduce an unattributed receipt of a later interval", one, function* (chain) {
    yield* paid(chain, inCoins)
    const { hash = "", number = 0 } = chain.blocks[start + 2] ?? {}
    yield* change("DELETE FROM balances")
    yield* change(
      "UPDATE receipts SET position = 'unattributed', tx_hash = NULL, block_number = ?, block_hash = ?",
      ...[number, hash]
    )
    yield* change("INSERT INTO balances VALUES ('ethereum', 'test', ?, ?, '0', 0)", alice.toLowerCase(), number - 1)
    yield* claimOf(inCoins.hash)
    expect(yield* ledgerRows).toEqual([
      ["tx:0", "7", 1],
      ["unattributed", "7", 1]
    ])
  })

  openScene("of a transaction whose block is not canonical is rejected", one, function* (chain) {
    const blockHash = `0x${"1".repeat(64)}`
    yield* paid(chain, inTokens)
    yield* damage(["drop"])
    chain.distort = ({ method }, answer) => {
      if (method !== "eth_getTransactionReceipt") return answer
      const { logs } = answer as { logs: ReadonlyArray<object> }
      return { ...(answer as object), blockHash, logs: logs.map((log) => ({ ...log, blockHash })) }
    }
    const refused = Effect.flip(claimOf(inTokens.hash))
    expect((yield* Effect.raceFirst(refused, Effect.forever(second))).message).toContain(
      `is in block ${blockHash}, which is not the chain's`
    )
    expect(yield* allRows).toEqual([])
  })

  openScene("of a transaction that a reorg has removed is refused", one, function* (chain) {
    yield* paid(chain, inTokens)
    chain.rollback(2)
    chain.mineMany(2)
    expect((yield* Effect.flip(claimOf(inTokens.hash))).message).toContain("No provider")
    const orphaned = until(ledger, (found) => found.every(({ canonical }) => canonical === 0))
    expect(yield* Effect.raceFirst(orphaned, Effect.forever(second))).toHaveLength(1)
  })
})

const bob = address(0xb0b)

/** The same node, which reports this token balance for every address. */
const holding = (client: RpcClient, amount: bigint): RpcClient => ({
  ...client,
  send: (calls) => {
    const contracts = calls.flatMap(({ method, params: [call] }) =>
      method === "eth_call" ? [(call as { readonly to: string }).to] : []
    )
    if (contracts.length === 0) return client.send(calls)
    const words = contracts.map((to) => `0x${(to === usdc ? amount : 0n).toString(16).padStart(64, "0")}`)
    // Multicall is not served here.
    return contracts.every((to) => to.includes("ccc")) ? Effect.succeed(words) : errorOf("model", "unsupported")
  }
})

openScene(
  "all transactions that brought a skipped address its tokens are claimed, once",
  { nodes: 1 },
  function* (chain) {
    yield* watchedPayment(alice)
    yield* next(chain, token(usdc, bob, 3n))
    yield* next(chain, { ...token(usdc, bob, 4n), isStateSync: true })
    yield* next(chain)
    yield* change("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 1000, 0)", bob)
    const turn = yield* exclusively
    const search = turn((watch, provider) => {
      const client = holding(provider.client, 7n)
      return findSkippedTokens(watch, { ...provider, client }, { number: 13, hash: "", time: 0 }, [bob])
    })
    expect(yield* ledger).toEqual([])
    yield* search
    expect((yield* ledger).map(({ amount, block_number }) => [block_number, amount])).toEqual([
      [11, "3"],
      [12, "4"]
    ])
    const before = chain.count("eth_getLogs")
    yield* search
    expect(chain.count("eth_getLogs")).toBe(before)
  }
)
