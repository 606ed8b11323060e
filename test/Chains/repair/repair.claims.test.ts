import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Tx, Writer } from "../../../src/Sql.ts"
import { alice, around, second, usdc } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { ledger, until } from "../world.ts"
import { claimOf, damage, paid, rows, start } from "./repairing.ts"

describe("a claim", () => {
  it.scoped("of a part of an unattributed receipt leaves the rest unchanged", () => {
    const chain = new ModelChain(start)
    const money = coin(alice, 7n)
    return Effect.gen(function* () {
      yield* paid(chain, money)
      const writer = yield* Writer
      yield* damage(["forget"])
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE receipts SET amount = '10'")))
      yield* claimOf(money.hash)
      yield* claimOf(money.hash)
      expect(yield* ledger).toMatchObject([
        { position: "tx:0", amount: "7", tx_hash: money.hash },
        { position: "unattributed", amount: "3", tx_hash: null }
      ])
    }).pipe(around(chain))
  })

  it.scoped("does not reduce an unattributed receipt of a later interval", () => {
    const chain = new ModelChain(start)
    const money = coin(alice, 7n)
    return Effect.gen(function* () {
      yield* paid(chain, money)
      const writer = yield* Writer
      yield* writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          const [n, hash] = [start + 2, chain.blocks[start + 2]?.hash ?? ""]
          yield* tx.run("DELETE FROM balances")
          yield* tx.run(
            "UPDATE receipts SET position = 'unattributed', tx_hash = NULL, block_number = ?, block_hash = ?",
            [n, hash]
          )
          yield* tx.run("INSERT INTO balances VALUES ('ethereum', 'test', ?, ?, '0', 0)", [alice.toLowerCase(), n - 1])
        })
      )
      yield* claimOf(money.hash)
      expect((yield* ledger).map(({ amount, position }) => `${position} ${amount}`)).toEqual([
        "tx:0 7",
        "unattributed 7"
      ])
    }).pipe(around(chain))
  })

  it.scoped("of a transaction whose block is not canonical is rejected", () => {
    const chain = new ModelChain(start)
    const money = token(usdc, alice, 7n)
    const blockHash = `0x${"1".repeat(64)}`
    return Effect.gen(function* () {
      yield* paid(chain, money)
      yield* damage(["drop"])
      chain.distort = ({ method }, answer) => {
        if (method !== "eth_getTransactionReceipt") return answer
        const { logs } = answer as { logs: ReadonlyArray<object> }
        return { ...(answer as object), blockHash, logs: logs.map((log) => ({ ...log, blockHash })) }
      }
      const refused = Effect.flip(claimOf(money.hash))
      expect((yield* Effect.raceFirst(refused, Effect.forever(second))).message).toContain(
        `is in block ${blockHash}, which is not the chain's`
      )
      expect(yield* rows).toEqual([])
    }).pipe(around(chain))
  })

  it.scoped("of a transaction that a reorg has removed is refused", () => {
    const chain = new ModelChain(start)
    const money = token(usdc, alice, 7n)
    return Effect.gen(function* () {
      yield* paid(chain, money)
      chain.rollback(2)
      chain.mineMany(2)
      expect((yield* Effect.flip(claimOf(money.hash))).message).toContain("No provider")
      const orphaned = until(ledger, (found) => found.every(({ canonical }) => canonical === 0))
      expect(yield* Effect.raceFirst(orphaned, Effect.forever(second))).toHaveLength(1)
    }).pipe(around(chain))
  })

  it.scoped("does not reduce orphaned receipts", () => {
    const chain = new ModelChain(start)
    const money = coin(alice, 7n)
    return Effect.gen(function* () {
      yield* paid(chain, money)
      const writer = yield* Writer
      yield* writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run("DELETE FROM balances")
          const unattributed = (hash: string | undefined, canonical: number) =>
            tx.run(
              `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, currency, amount,
                 payment_id, canonical, corroborated, seen_at)
               SELECT chain, mode, ?, address, 'unattributed', block_number + canonical, block_time, currency, amount,
                 payment_id, ?, corroborated, seen_at FROM receipts WHERE position = 'tx:0'`,
              [hash ?? "", canonical]
            )
          yield* unattributed(chain.blocks[start + 2]?.hash, 1)
          yield* tx.run("UPDATE receipts SET canonical = 0 WHERE position = 'tx:0'")
          yield* unattributed("0xold", 0)
          yield* tx.run("DELETE FROM receipts WHERE position = 'tx:0'")
        })
      )
      yield* claimOf(money.hash)
      expect((yield* ledger).map(({ canonical, position }) => `${position} ${canonical}`)).toEqual([
        "unattributed 0",
        "tx:0 1"
      ])
    }).pipe(around(chain))
  })
})
