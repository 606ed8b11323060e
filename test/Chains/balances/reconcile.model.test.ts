import { expect, it } from "@effect/vitest"
import { Effect, Runtime } from "effect"
import * as fc from "fast-check"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { sum } from "../../../src/Domain/Amount.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { BalanceModel, contract, type Deed, nothing, stranger } from "./BalanceModel.ts"
import { alice, bob, depsOf, inStore, network, owe, receipts, round, scanTo } from "./reconcileWorld.ts"

const addresses = [alice, bob] as const

const who = fc.constantFrom(...addresses)
// Few and small, so that what comes and what goes is often the same.
const wei = fc.bigInt({ min: 1n, max: 6n })

const payments: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ to: who, value: wei }).map(({ to, value }) => ({ ...nothing, to, value })),
  fc.record({ to: who, value: wei }).map(({ to, value }) => ({ ...nothing, to, value, fails: true })),
  fc
    .record({ to: who, amount: wei })
    .map(({ amount, to }) => ({ ...nothing, names: [to], moves: [{ from: contract, to, amount }] })),
  fc
    .record({ to: who, amount: wei })
    .map(({ amount, to }) => ({ ...nothing, moves: [{ from: contract, to, amount }] })),
  fc.tuple(wei, wei).map((amounts) => ({
    ...nothing,
    moves: addresses.map((to, i) => ({ from: contract, to, amount: amounts[i] ?? 1n }))
  })),
  who.map((name) => ({ ...nothing, names: [name] })),
  fc
    .record({ to: who, amount: wei })
    .map(({ amount, to }) => ({ ...nothing, fails: true, names: [to], moves: [{ from: contract, to, amount }] }))
)

const spends: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ from: who, value: wei, fails: fc.boolean() }).map((over) => ({ ...nothing, to: stranger, ...over })),
  who.map((from) => ({ ...nothing, from, to: from, value: 1n })),
  fc.constant({ ...nothing, from: addresses[0], to: addresses[1], value: 2n }),
  // A contract that refunds a part to the sender.
  who.map((from) => ({ ...nothing, from, value: 4n, moves: [{ from: contract, to: from, amount: 3n }] }))
)

interface Story {
  /** Blocks after the payments are made, and whether a round runs after each. */
  readonly blocks: ReadonlyArray<{ readonly deeds: ReadonlyArray<Deed>; readonly look: boolean }>
  readonly before: ReadonlyArray<Deed>
  /** As on ethereum: what is sent to an address itself is in the ledger before the round. */
  readonly readsBlocks: boolean
  readonly seed: string
}

const story = (deeds: fc.Arbitrary<Deed>): fc.Arbitrary<Story> =>
  fc.record({
    blocks: fc.array(fc.record({ deeds: fc.array(deeds, { maxLength: 4 }), look: fc.boolean() }), { maxLength: 12 }),
    before: fc.array(payments, { maxLength: 3 }),
    readsBlocks: fc.boolean(),
    seed: fc.hexaString({ minLength: 8, maxLength: 8 })
  })

/** Plays a story on an emptied store, and returns what came and what the ledger says, by block and address. */
const play = ({ before, blocks, readsBlocks, seed }: Story, prepare: (model: BalanceModel) => void = () => {}) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        for (const table of ["receipts", "balances", "payments", "scans", "blocks"])
          yield* tx.run(`DELETE FROM ${table}`)
      })
    )
    const model = new BalanceModel(seed)
    model.mine(before)
    const created = model.head.number
    yield* scanTo(model.head)
    for (const address of addresses) yield* owe(address, { expiresAt: 100_000 })
    prepare(model)
    const look = Effect.fnUntraced(function* () {
      if (readsBlocks) yield* Effect.forEach(model.blocks.slice(created + 1), keepDirect, { concurrency: 1 })
      const { stored } = yield* round(depsOf(model.client), model.head)
      expect(stored).toBe(true)
    })
    for (const block of blocks) {
      model.mine(block.deeds)
      if (block.look) yield* look()
    }
    // Past the deadline.
    model.mine([], 200_000)
    yield* look()

    const rows = yield* receipts
    const recorded = new Map<string, bigint>()
    for (const { address, amount, block_number } of rows) {
      const key = `${block_number} ${address}`
      recorded.set(key, (recorded.get(key) ?? 0n) + BigInt(amount))
    }
    const truth = new Map(
      addresses.flatMap((address) =>
        Array.from(model.came(address, created), ([number, amount]) => [`${number} ${address}`, amount] as const)
      )
    )
    return { recorded, truth, unattributed: rows.filter((row) => row.position === "unattributed").length }
  })

/** What the watcher of ethereum stores of a block. */
const keepDirect = (block: BalanceModel["blocks"][number]) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Ledger.keepReceipts(
        network,
        block.deeds.flatMap(({ fails, from, hash, to, value }, index) =>
          fails || value === 0n || from === to || !addresses.some((one) => one === to)
            ? []
            : [
                {
                  blockNumber: block.number,
                  blockHash: block.hash,
                  blockTime: block.time,
                  txHash: hash,
                  position: `tx:${index}`,
                  address: to,
                  currency: "ETH",
                  amount: value
                }
              ]
        ),
        true
      )
    )
  )

const holds = (
  deeds: fc.Arbitrary<Deed>,
  check: (story: Story) => Effect.Effect<void, unknown, Effect.Effect.Context<ReturnType<typeof play>>>
) =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime<Effect.Effect.Context<ReturnType<typeof play>>>()
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(story(deeds), (one) => Runtime.runPromise(runtime)(check(one))),
        { numRuns: 40 }
      )
    )
  }).pipe(inStore)

it.live("finds and attributes all income in its block, whatever the owner spends", () =>
  holds(fc.oneof({ weight: 3, arbitrary: payments }, { weight: 2, arbitrary: spends }), (one) =>
    Effect.map(play(one), ({ recorded, truth, unattributed }) => {
      expect(recorded).toEqual(truth)
      expect(unattributed).toBe(0)
    })
  )
)

it.live("finds all income in its block where no provider traces", () =>
  holds(fc.oneof({ weight: 3, arbitrary: payments }, { weight: 2, arbitrary: spends }), (one) =>
    Effect.map(
      play(one, (model) => {
        model.traces = false
      }),
      ({ recorded, truth }) => {
        expect(recorded).toEqual(truth)
      }
    )
  )
)

const total = (amounts: ReadonlyMap<string, bigint>) => sum(amounts.values())
const forgetful = (model: BalanceModel) => {
  model.states = 1
}

it.live("finds all income where all nodes have pruned old states", () =>
  holds(payments, (one) =>
    Effect.map(play({ ...one, before: [] }, forgetful), ({ recorded, truth }) => {
      expect(total(recorded)).toBe(total(truth))
    })
  )
)

it.live("never reports more than the income with old states pruned, whatever the owner spends", () =>
  holds(fc.oneof(payments, spends), (one) =>
    Effect.map(play({ ...one, before: [] }, forgetful), ({ recorded, truth }) => {
      expect(total(recorded)).toBeLessThanOrEqual(total(truth))
    })
  )
)
