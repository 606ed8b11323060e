import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as CorroborationRepo from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import * as Searches from "../../../src/Chains/corroboration/SearchesRepo.ts"
import type { ReceiptKey } from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Reader, Writer } from "../../../src/Sql.ts"
import { block, confirmedOnce, layer, network, tick, transfer } from "../../Payments/settling.ts"

it.scoped("a confirmed payment is searched again when a reorg takes money from a block above the last search", () =>
  Effect.gen(function* () {
    const { id } = yield* confirmedOnce
    const reader = yield* Reader
    const writer = yield* Writer
    const due = (final: number) =>
      Effect.map(Searches.due(reader, network, block(140), block(140), 0, final, [], 10), (all) =>
        all.map(({ payment }) => payment)
      )
    expect(yield* due(140)).toEqual([])
    yield* tick({ head: 131, ancestor: 119 })
    expect(yield* due(119)).toEqual([])
    expect(yield* due(120)).toEqual([id])
    yield* writer.write(Searches.keep(network, [id], 125))
    expect(yield* due(140)).toEqual([])
    yield* tick({ head: 132, transfers: [transfer(128, 1000n)] })
    yield* tick({ head: 133, ancestor: 127 })
    expect(yield* due(127)).toEqual([])
    expect(yield* due(128)).toEqual([id])
    yield* writer.write(Searches.keep(network, [id], 128))
    expect(yield* Searches.searchedTo(reader, id)).toBe(128)
    expect(yield* due(140)).toEqual([])
  }).pipe(Effect.provide(layer))
)

it.scoped("a payment is searched again after two providers have denied money of it", () =>
  Effect.gen(function* () {
    const { id } = yield* confirmedOnce
    const reader = yield* Reader
    const writer = yield* Writer
    yield* writer.write(Searches.keep(network, [id], 125))
    const receipts = yield* reader.all<ReceiptKey>(
      "SELECT block_hash AS blockHash, address, position FROM receipts WHERE payment_id = ?",
      [id]
    )
    for (const receipt of receipts) yield* writer.write(CorroborationRepo.refute(network, receipt))
    expect(yield* Searches.searchedTo(reader, id)).toBe(undefined)
  }).pipe(Effect.provide(layer))
)
