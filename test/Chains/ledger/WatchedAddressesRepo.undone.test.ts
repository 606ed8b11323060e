import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as CorroborationRepo from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import * as Searches from "../../../src/Chains/corroboration/SearchesRepo.ts"
import type { ReceiptKey } from "../../../src/Chains/ledger/LedgerRepo.ts"
import * as Watched from "../../../src/Chains/ledger/WatchedAddressesRepo.ts"
import { Reader, Tx } from "../../../src/Sql.ts"
import { write } from "../../lib/rows.ts"
import { confirmedOnce, elsewhere, layer, network, start, tick, transfer } from "../../Payments/settling.ts"

// Whether a confirmed payment waits for what a reorg makes of it.

const waits = ({ final = 200, on = network, searches = true }) =>
  Effect.flatMap(Reader, (reader) => Watched.anyUndone(reader, on, final, searches))

it.scoped("a confirmed payment waits until its lost blocks are final, and another provider has been asked", () =>
  Effect.gen(function* () {
    const { id } = yield* confirmedOnce
    expect(yield* waits({})).toBe(false)
    yield* tick({ head: 131, ancestor: 119, finalized: 110 })
    expect(yield* waits({})).toBe(true)
    expect(yield* waits({ final: 119, searches: false })).toBe(true)
    expect(yield* waits({ final: 120, searches: false })).toBe(false)
    expect(yield* waits({ on: elsewhere })).toBe(false)
    yield* write(Searches.keep(network, [id], 119))
    expect(yield* waits({ final: 120 })).toBe(true)
    yield* write(Searches.keep(network, [id], 120))
    expect(yield* waits({ final: 119 })).toBe(true)
    expect(yield* waits({ final: 120 })).toBe(false)
  }).pipe(Effect.provide(layer))
)

it.scoped.each([
  [
    "has failed",
    Effect.zipRight(tick({ head: 131, ancestor: 119, finalized: 118 }), tick({ head: 132, finalized: 120 }))
  ],
  [
    "has its transaction mined again",
    tick({ head: 131, ancestor: 119, transfers: [{ ...transfer(125, 1000n), txHash: "0xt120" }] })
  ]
] as const)("a confirmed payment that %s does not wait", ([, steps]) =>
  Effect.gen(function* () {
    yield* confirmedOnce
    yield* steps
    expect(yield* waits({ final: 110 })).toBe(false)
  }).pipe(Effect.provide(layer))
)

it.scoped("an open payment does not wait", () =>
  Effect.gen(function* () {
    yield* start
    yield* tick({ head: 121, transfers: [transfer(120, 1n)] })
    yield* tick({ head: 122, ancestor: 119 })
    expect(yield* waits({ final: 110 })).toBe(false)
  }).pipe(Effect.provide(layer))
)

it.scoped("a confirmed payment waits neither for what two providers have denied nor for what is too small", () =>
  Effect.gen(function* () {
    yield* confirmedOnce
    const reader = yield* Reader
    yield* tick({ head: 131, ancestor: 119, finalized: 110 })
    const [receipt] = yield* reader.all<ReceiptKey>("SELECT block_hash AS blockHash, address, position FROM receipts")
    if (receipt === undefined) return yield* Effect.dieMessage("there is no receipt")
    const run = (statement: string) => write(Effect.flatMap(Tx, (tx) => tx.run(statement)))
    yield* run("UPDATE receipts SET position = 'tx:0', listed = NULL")
    expect(yield* waits({ final: 110 })).toBe(false)
    yield* run("UPDATE receipts SET listed = 'own'")
    expect(yield* waits({ final: 110 })).toBe(true)
    yield* write(CorroborationRepo.refute(network, receipt))
    expect(yield* waits({ final: 110 })).toBe(false)
  }).pipe(Effect.provide(layer))
)
