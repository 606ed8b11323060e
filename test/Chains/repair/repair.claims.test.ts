import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { change } from "../../lib/rows.ts"
import { alice, next, second, usdc, watchedPayment } from "../around.ts"
import { openScene } from "../corroboration/scene.ts"
import { coin, token } from "../ModelChain.ts"
import { ledger, until } from "../world.ts"
import { claimOf, damage, paid, rows, start } from "./repairing.ts"

const one = { nodes: 1 }
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

  openScene("does not reduce orphaned receipts", one, function* (chain) {
    yield* paid(chain, inCoins)
    yield* change("DELETE FROM balances")
    const unattributed = (hash: string, canonical: number) =>
      change(
        `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, currency, amount,
           payment_id, canonical, corroborated, seen_at, since_number, since_time)
         SELECT chain, mode, ?, address, 'unattributed', block_number + canonical, block_time, currency, amount,
           payment_id, ?, corroborated, seen_at, block_number - 1, block_time FROM receipts WHERE position = 'tx:0'`,
        ...[hash, canonical]
      )
    yield* unattributed(chain.blocks[start + 2]?.hash ?? "", 1)
    yield* change("UPDATE receipts SET canonical = 0 WHERE position = 'tx:0'")
    yield* unattributed("0xold", 0)
    yield* change("DELETE FROM receipts WHERE position = 'tx:0'")
    yield* claimOf(inCoins.hash)
    expect(yield* ledgerRows).toEqual([
      ["unattributed", "7", 0],
      ["tx:0", "7", 1]
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
    expect(yield* rows).toEqual([])
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
