import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, TestContext } from "effect"
import * as fc from "fast-check"
import { claim } from "../../src/Chains/claim.ts"
import { rescan } from "../../src/Chains/repair.ts"
import { Chains } from "../../src/Chains.ts"
import { eventLoopTurn } from "../../src/eventLoopTurn.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { address, alice, around, aroundReal, bridged, lookAlike, second, upTo, usdc } from "./around.ts"
import { coin, ModelChain, type ModelTransaction, token } from "./ModelChain.ts"
import { ledger, pay, paymentById, until, watch } from "./world.ts"

const start = 10
const network = { chain: "ethereum", mode: "test" } as const
const payees = 3

const exclusively = Effect.map(Chains, (chains) => chains.exclusively(network))
const rescanFrom = (from: number, to?: number) =>
  Effect.flatMap(exclusively, (turn) => rescan(turn, { from, ...(to === undefined ? {} : { to }) }, "1 minute"))
const claimOf = (hash: string) => Effect.flatMap(exclusively, (turn) => claim(turn, hash))

/** All of the ledger but when each row was first seen. */
const rows = Effect.flatMap(Reader, (reader) =>
  reader.all<object>(
    `SELECT chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount, payment_id,
       canonical, agreed FROM receipts ORDER BY block_hash, address, position`
  )
)

const checkpoint = Effect.flatMap(Reader, (reader) =>
  reader.get<object>("SELECT head_number, head_hash, start_number FROM scans")
)

interface Money {
  readonly block_hash: string
  readonly address: string
  readonly position: string
  readonly amount: string
}

/** Takes a receipt out of the ledger; a coin's stays there as money that nobody can tell the origin of. */
const lose = ({ address, amount, block_hash, position }: Money, keptAsUnattributed: boolean) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const key = [block_hash, address]
    const where = "block_hash = ? AND address = ? AND position"
    if (keptAsUnattributed) {
      const there = yield* tx.get<Money>(`SELECT amount FROM receipts WHERE ${where} = 'unattributed'`, key)
      yield* tx.run(`DELETE FROM receipts WHERE ${where} = 'unattributed'`, key)
      yield* tx.run(
        `INSERT INTO receipts SELECT chain, mode, block_hash, address, 'unattributed', block_number, block_time, NULL,
           currency, ?, payment_id, canonical, agreed, seen_at FROM receipts WHERE ${where} = ?`,
        [(BigInt(amount) + BigInt(there?.amount ?? 0)).toString(), ...key, position]
      )
    }
    yield* tx.run(`DELETE FROM receipts WHERE ${where} = ?`, [...key, position])
  })

/** Loses receipts as the choices say, one each: none, all of it, or only the knowledge of its transaction. */
const damage = (choices: ReadonlyArray<"keep" | "drop" | "forget">) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const all = (yield* rows) as ReadonlyArray<Money>
    yield* writer.write(
      Effect.forEach(
        all,
        (row, i) => {
          const choice = choices[i % choices.length]
          if (choice === "keep") return Effect.void
          return lose(row, choice === "forget" && row.position.startsWith("tx:"))
        },
        { concurrency: 1, discard: true }
      )
    )
  })

const transaction = fc
  .record({
    payee: fc.nat(payees),
    value: fc.bigInt({ min: 0n, max: 5n }),
    fails: fc.constantFrom(false, false, true),
    contract: fc.constantFrom(undefined, undefined, usdc, bridged, lookAlike)
  })
  .map(
    ({ contract, fails, payee, value }): ModelTransaction => coin(address(payee + 1), value, { fails, token: contract })
  )
const repair = fc.oneof(
  fc.record({ does: fc.constant("rescan" as const), from: fc.nat(20), blocks: fc.nat(10) }),
  fc.record({ does: fc.constant("claim" as const), which: fc.nat(50) })
)

/** A chain with these blocks that was read, in a world whose ledger is damaged, and then repaired as the steps say. */
const play = (
  blocks: ReadonlyArray<ReadonlyArray<ModelTransaction>>,
  choices: ReadonlyArray<"keep" | "drop" | "forget">,
  repairs: ReadonlyArray<typeof repair extends fc.Arbitrary<infer A> ? A : never>
) => {
  const chain = new ModelChain(start)
  return Effect.gen(function* () {
    for (let n = 1; n <= payees; n++) yield* pay(address(n))
    yield* watch
    yield* upTo(start)
    // The same transaction is in one block only.
    const made = blocks.map((block) =>
      block.map((one) => coin(one.to, one.value, { fails: one.fails ?? false, token: one.token }))
    )
    for (const block of made) chain.mine(...block)
    const { height } = chain
    const hashes = made.flat().map(({ hash }) => hash)
    yield* Effect.raceFirst(upTo(height), Effect.forever(second))
    const whole = yield* rows
    const read = yield* checkpoint

    yield* damage(choices)
    for (const step of repairs) {
      if (step.does === "claim") yield* Effect.ignore(claimOf(hashes[step.which % Math.max(1, hashes.length)] ?? ""))
      else {
        const from = Math.min(step.from, height)
        yield* rescanFrom(from, Math.min(from + step.blocks, height))
      }
    }
    // In either order: each finds all that it can.
    yield* Effect.forEach(hashes.slice(0, 3), (hash) => Effect.ignore(claimOf(hash)), { concurrency: 1 })
    yield* rescanFrom(0)
    expect(yield* rows).toEqual(whole)
    const again = yield* rescanFrom(0)
    expect(again.added).toBe(0)
    for (const hash of hashes) {
      const { added } = yield* claimOf(hash).pipe(Effect.catchTag("RepairRefused", () => Effect.succeed({ added: 0 })))
      expect(added).toBe(0)
    }
    expect(yield* rows).toEqual(whole)
    expect(yield* checkpoint).toEqual(read)
  }).pipe(around(chain))
}

it("brings back whatever the ledger has lost, counts nothing twice, and moves nothing else", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(transaction, { maxLength: 3 }), { minLength: 1, maxLength: 6 }),
      fc.array(fc.constantFrom("keep" as const, "drop" as const, "forget" as const), { minLength: 1, maxLength: 8 }),
      fc.array(repair, { maxLength: 4 }),
      (blocks, choices, repairs) =>
        Effect.runPromise(play(blocks, choices, repairs).pipe(Effect.scoped, Effect.provide(TestContext.TestContext)))
    ),
    { numRuns: 25 }
  ))

/** A payment to alice that has been read up to the block after its money. */
const paid = (chain: ModelChain, money: ModelTransaction) =>
  Effect.gen(function* () {
    yield* pay(alice)
    yield* watch
    yield* upTo(start)
    chain.mine(money)
    chain.mine()
    yield* Effect.raceFirst(upTo(start + 2), Effect.forever(second))
  })

describe("a claim", () => {
  it.scoped("of a part of what came without a transaction leaves the rest as it was", () => {
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

  it.scoped("is not of what was known before the interval in which money came", () => {
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

  it.scoped("of a transaction that a provider tells of in a block which is not the chain's is not believed", () => {
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

  it.scoped("of a transaction that a reorg has taken away is refused", () => {
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
})

describe("a rescan", () => {
  it.scoped("moves the payments whose money it finds, at once", () => {
    const chain = new ModelChain(start)
    return Effect.gen(function* () {
      const { id } = yield* pay(alice, { currency: "USDC" })
      yield* watch
      yield* upTo(start)
      // Of this the first reading learns nothing.
      chain.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
      chain.mine(token(usdc, alice, 40n))
      chain.mine()
      yield* Effect.raceFirst(upTo(start + 2), Effect.forever(second))
      chain.distort = (_, answer) => answer
      expect((yield* paymentById(id))?.status).toBe("pending")
      expect((yield* rescanFrom(start + 1)).added).toBe(1)
      expect(yield* paymentById(id)).toMatchObject({ status: "detecting", amountReceived: 40n })
    }).pipe(aroundReal(chain))
  })

  it.scoped(
    "stores nothing of a provider that shows another branch than the one that was read, and tries again",
    () => {
      const chain = new ModelChain(start)
      return Effect.gen(function* () {
        yield* paid(chain, token(usdc, alice, 7n))
        yield* damage(["drop"])
        let lies = 1
        chain.distort = ({ params: [number] }, answer) =>
          number === `0x${(start + 2).toString(16)}` && lies-- > 0
            ? { ...(answer as object), hash: `0x${"1".repeat(64)}` }
            : answer
        const repaired = yield* Effect.fork(rescanFrom(start + 1, start + 1))
        yield* until(
          Effect.sync(() => lies),
          (left) => left <= 0
        )
        yield* Effect.repeatN(eventLoopTurn, 50)
        expect(yield* rows).toEqual([])
        const { added } = yield* Effect.raceFirst(Fiber.join(repaired), Effect.forever(second))
        expect(added).toBe(1)
      }).pipe(around(chain))
    }
  )

  it.scoped("stores nothing of a block that is stored under another hash", () => {
    const chain = new ModelChain(start)
    return Effect.gen(function* () {
      yield* paid(chain, token(usdc, alice, 7n))
      yield* damage(["drop"])
      const writer = yield* Writer
      const number = start + 1
      yield* writer.write(
        Effect.flatMap(Tx, (tx) => tx.run("UPDATE blocks SET hash = '0xother' WHERE number = ?", [number]))
      )
      const refused = Effect.flip(rescanFrom(number, number))
      expect((yield* Effect.raceFirst(refused, Effect.forever(second))).message).toContain(
        "the blocks that were read are not those of the chain that is stored"
      )
      expect(yield* rows).toEqual([])
    }).pipe(around(chain))
  })

  it.scoped("stops after its budget and tells how far it has come", () => {
    const chain = new ModelChain(start + 350)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      yield* upTo(start + 350)
      const turn = yield* exclusively
      const part = yield* rescan(turn, { from: 1 }, "0 seconds")
      expect(part).toEqual({ through: 100, to: start + 350, receipts: 0, added: 0 })
      expect(yield* rescan(turn, { from: 1 }, "1 minute")).toMatchObject({ through: start + 350 })
    }).pipe(around(chain))
  })
})
