import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as CorroborationRepo from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import * as SecondEvidenceRepo from "../../../src/Chains/corroboration/SecondEvidenceRepo.ts"
import type { DatedTransfer } from "../../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Reader, Writer } from "../../../src/Sql.ts"
import { layer, network, startWith, tick, transfer } from "../../Payments/settling.ts"

const dust = (position: string): DatedTransfer => ({ ...transfer(105, 1n), currency: "USDC", position })

/** A payment with two dust transfers that one provider has reported. */
const withDust = Effect.gen(function* () {
  const payment = yield* startWith({ currency: "USDC", amount: 1_000_000n })
  yield* tick({ head: 120, corroborated: false, transfers: [dust("log:1"), dust("log:2")] })
  return payment
})

const corroborated = Effect.flatMap(Reader, (reader) =>
  reader.all("SELECT position, canonical, corroborated FROM receipts ORDER BY position")
)

it.scoped(
  "dust that two providers have denied is not asked about again, and does not count when another one has it",
  () =>
    Effect.gen(function* () {
      const { id } = yield* withDust
      const reader = yield* Reader
      const writer = yield* Writer
      const asked = Effect.map(
        CorroborationRepo.uncorroboratedDust(reader, network, 120, [{ payment: id }], 10),
        (all) => all.map(({ position }) => position)
      )
      expect(yield* asked).toEqual(["log:1", "log:2"])
      yield* writer.write(CorroborationRepo.refute(network, dust("log:1")))
      expect(yield* asked).toEqual(["log:2"])
      yield* writer.write(
        SecondEvidenceRepo.corroborateOthers(network, [dust("log:1"), dust("log:2")], new Set(), false)
      )
      expect(yield* corroborated).toEqual([
        { position: "log:1", canonical: 0, corroborated: 0 },
        { position: "log:2", canonical: 1, corroborated: 1 }
      ])
      // Two providers that report it in a verification pass do make it count.
      yield* writer.write(SecondEvidenceRepo.setPassCorroborated(network, [dust("log:1")]))
      expect((yield* corroborated)[0]).toEqual({ position: "log:1", canonical: 1, corroborated: 1 })
    }).pipe(Effect.provide(layer))
)

it.scoped(
  "money without a transaction gets the block times of two providers, and is not corroborated while one alone shows it",
  () =>
    Effect.gen(function* () {
      yield* startWith()
      const unattributed = (number: number) => transfer(number, 5n, { position: "unattributed", txHash: undefined })
      yield* tick({
        head: 120,
        corroborated: false,
        transfers: [unattributed(105), { ...unattributed(106), since: 104 }]
      })
      const writer = yield* Writer
      const dated = [unattributed(105), { ...unattributed(106), sinceTime: 90 }].map((one) => ({
        ...one,
        blockTime: 99
      }))
      const datedOnly = new Set(dated.slice(1).map(LedgerRepo.keyOf))
      expect(yield* writer.write(SecondEvidenceRepo.corroborateOthers(network, dated, datedOnly, false))).toHaveLength(
        2
      )
      const all = (yield* Reader).all(
        "SELECT block_number AS block, corroborated, block_time AS time, since_time AS since FROM receipts ORDER BY block_number"
      )
      expect(yield* all).toEqual([
        { block: 105, corroborated: 1, time: 99, since: null },
        { block: 106, corroborated: 0, time: 99, since: 90 }
      ])
    }).pipe(Effect.provide(layer))
)

it.scoped("money without a transaction is listed as undated only while its block is canonical", () =>
  Effect.gen(function* () {
    const { id } = yield* startWith()
    const reader = yield* Reader
    const undated = Effect.map(SecondEvidenceRepo.undated(reader, network, 120, [{ payment: id }]), (all) =>
      all.map(({ blockNumber }) => blockNumber)
    )
    const unattributed = transfer(105, 5n, { position: "unattributed", txHash: undefined })
    yield* tick({ head: 120, corroborated: false, transfers: [unattributed] })
    expect(yield* undated).toEqual([105])
    yield* tick({ head: 121, ancestor: 104 })
    expect(yield* undated).toEqual([])
  }).pipe(Effect.provide(layer))
)

it.scoped(
  "a denied receipt counts against its whole transaction in that block: no sole provider decides on its other receipts",
  () =>
    Effect.gen(function* () {
      const { id } = yield* startWith({ currency: "USDC", amount: 1_000_000n })
      const log = (number: number, position: string, amount: bigint) => ({
        ...transfer(number, amount),
        ...{ currency: "USDC", position, txHash: "0xlie" }
      })
      const all = [log(105, "log:1", 300_000n), log(105, "log:2", 200_000n), log(106, "log:1", 300_000n), dust("log:3")]
      yield* tick({ head: 120, corroborated: false, transfers: [...all, log(105, "log:4", 1n)] })
      const reader = yield* Reader
      const writer = yield* Writer
      yield* writer.write(CorroborationRepo.setDenied(network, log(105, "log:1", 300_000n), "a.example"))
      const open = yield* CorroborationRepo.uncorroborated(reader, network, 120, 10)
      const of = (one: (typeof open)[number]) => [one.blockNumber, one.position, one.isDenied, one.deniedBy]
      expect(open.map(of)).toEqual([
        [106, "log:1", false, undefined],
        [105, "log:2", true, undefined],
        [105, "log:1", true, "a.example"]
      ])
      const ofDust = yield* CorroborationRepo.uncorroboratedDust(reader, network, 120, [{ payment: id }], 10)
      yield* writer.write(
        SecondEvidenceRepo.corroborateOthers(
          network,
          ofDust.map((one) => ({ ...one, blockTime: 105 })),
          new Set(),
          true
        )
      )
      expect(yield* reader.all("SELECT position FROM receipts WHERE corroborated = 1")).toEqual([{ position: "log:3" }])
    }).pipe(Effect.provide(layer))
)

it.scoped(
  "a denied receipt that two providers corroborate does not count against other receipts of its transaction",
  () =>
    Effect.gen(function* () {
      const { id } = yield* startWith({ currency: "USDC", amount: 1_000_000n })
      const all = [{ ...dust("log:1"), amount: 500_000n }, dust("log:2")].map((one) => ({ ...one, txHash: "0xpaid" }))
      yield* tick({ head: 120, corroborated: false, transfers: all })
      const writer = yield* Writer
      const [large = dust("log:1"), small = dust("log:2")] = all
      yield* writer.write(CorroborationRepo.setDenied(network, large, "liar.example"))
      yield* writer.write(CorroborationRepo.setCorroborated(network, large, 105))
      const [asked] = yield* CorroborationRepo.uncorroboratedDust(yield* Reader, network, 120, [{ payment: id }], 10)
      expect(asked).toMatchObject({ position: "log:2", isDenied: false })
      expect(yield* writer.write(SecondEvidenceRepo.corroborateOthers(network, [small], new Set(), true))).toEqual([id])
    }).pipe(Effect.provide(layer))
)

it.scoped(
  "an invented receipt that two providers deny does not count against receipts of its transaction that two have",
  () =>
    Effect.gen(function* () {
      const { id } = yield* startWith({ currency: "USDC", amount: 1_000_000n })
      const all = [{ ...dust("log:1"), amount: 500_000n }, dust("log:2")].map((one) => ({ ...one, txHash: "0xpaid" }))
      yield* tick({ head: 120, corroborated: false, transfers: all })
      const writer = yield* Writer
      const [invented = dust("log:1"), real = dust("log:2")] = all
      yield* writer.write(CorroborationRepo.setDenied(network, invented, "a.example"))
      yield* writer.write(CorroborationRepo.refute(network, invented))
      const corroborate = (isSole: boolean) =>
        writer.write(SecondEvidenceRepo.corroborateOthers(network, [real], new Set(), isSole))
      expect(yield* corroborate(true)).toEqual([])
      expect(yield* corroborate(false)).toEqual([id])
    }).pipe(Effect.provide(layer))
)
