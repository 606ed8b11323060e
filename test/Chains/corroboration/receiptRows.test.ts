import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Balances from "../../../src/Chains/balances/BalancesRepo.ts"
import * as CorroborationRepo from "../../../src/Chains/corroboration/CorroborationRepo.ts"
import * as Searches from "../../../src/Chains/corroboration/SearchesRepo.ts"
import * as SecondEvidenceRepo from "../../../src/Chains/corroboration/SecondEvidenceRepo.ts"
import * as UnshownReceipts from "../../../src/Chains/corroboration/UnshownReceiptsRepo.ts"
import type { DatedTransfer, ReceiptKey } from "../../../src/Chains/ledger/LedgerRepo.ts"
import * as LedgerRepo from "../../../src/Chains/ledger/LedgerRepo.ts"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import { Reader, type Tx, Writer } from "../../../src/Sql.ts"
import { rows } from "../../lib/rows.ts"
import { block, confirmedOnce, layer, network, startWith, tick, transfer } from "../../Payments/settling.ts"

const { corroborateOthers, setPassCorroborated } = SecondEvidenceRepo
const write = <A, E>(command: Effect.Effect<A, E, Tx>) => Effect.flatMap(Writer, (writer) => writer.write(command))

const token = (position: string, amount = 1n): DatedTransfer => ({
  ...transfer(105, amount),
  currency: "USDC",
  position
})
const unattributed = (number: number) => transfer(number, 5n, { position: "unattributed", txHash: undefined })

/** A payment with these receipts, which one provider has reported. */
const reported = (...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.zipLeft(
    startWith({ currency: transfers[0]?.currency === "USDC" ? "USDC" : "ETH", amount: 1_000_000n }),
    tick({ head: 120, corroborated: false, transfers })
  )

/** The uncorroborated receipts of payments' own money. */
const open = Effect.flatMap(Reader, (reader) => CorroborationRepo.uncorroborated(reader, network, "own", 120, 10))

describe("money without a transaction", () => {
  it.scoped("gets the block times of two providers, and is not corroborated while one alone shows it", () =>
    Effect.gen(function* () {
      yield* reported(unattributed(105), { ...unattributed(106), since: 104 })
      const dated = [unattributed(105), { ...unattributed(106), sinceTime: 90 }].map((one) => ({
        ...one,
        blockTime: 99
      }))
      const datedOnly = new Set(dated.slice(1).map(LedgerRepo.keyOf))
      expect(yield* write(corroborateOthers(network, dated, datedOnly, false))).toHaveLength(2)
      const all = rows(
        "SELECT block_number AS block, corroborated, block_time AS time, since_time AS since FROM receipts ORDER BY 1"
      )
      expect(yield* all).toEqual([
        { block: 105, corroborated: 1, time: 99, since: null },
        { block: 106, corroborated: 0, time: 99, since: 90 }
      ])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("is shown beside all other coins of its blocks, of which some may have no transaction either", () =>
    Effect.gen(function* () {
      const own = { ...unattributed(106), since: 105 }
      yield* reported(unattributed(104), unattributed(105), own, transfer(106, 3n), {
        ...unattributed(107),
        since: 106
      })
      yield* write(UnshownReceipts.setShown(network, unattributed(105)))
      const reader = yield* Reader
      expect(yield* UnshownReceipts.receivedWith(reader, network, own)).toEqual({ all: 8n, corroborated: 5n })
    }).pipe(Effect.provide(layer))
  )

  it.scoped("holds up the end above the settled block of its own chain only, whatever the numbers of another one", () =>
    Effect.gen(function* () {
      const { id } = yield* reported(token("log:1", 500_000n))
      const over = { ...block(119), time: 1e9 }
      const due = Effect.flatMap(Reader, (reader) =>
        Effect.map(Searches.due(reader, network, over, over, 119, [], 10), (all) => all.map((one) => one.payment))
      )
      const keep = (chain: "base" | "optimism") =>
        write(LedgerRepo.keepReceipts({ chain, mode: network.mode }, [unattributed(9_000)], true))
      expect(yield* due).toEqual([id])
      yield* keep("optimism")
      expect(yield* due).toEqual([id])
      yield* keep("base")
      expect(yield* due).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("that two refute takes the balances of its address with it, also those of earlier blocks", () =>
    Effect.gen(function* () {
      yield* reported(unattributed(105))
      const { address } = unattributed(105)
      const point = (number: number, of: string) => ({ number, balance: 1n, nonce: 0, address: of })
      yield* write(Balances.keepRows(network, [point(104, address), point(105, address), point(104, "0xother")]))
      yield* write(CorroborationRepo.refute(network, token("log:9")))
      expect(yield* rows("SELECT 1 FROM balances")).toHaveLength(3)
      yield* write(CorroborationRepo.refute(network, unattributed(105)))
      expect(yield* rows("SELECT address FROM balances")).toEqual([{ address: "0xother" }])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("is listed as undated only while its block is canonical", () =>
    Effect.gen(function* () {
      const { id } = yield* reported(unattributed(105))
      const undated = Effect.flatMap(Reader, (reader) =>
        SecondEvidenceRepo.undated(reader, network, 120, [{ payment: id }])
      )
      expect(yield* undated).toMatchObject([{ blockNumber: 105 }])
      yield* tick({ head: 121, ancestor: 104 })
      expect(yield* undated).toEqual([])
    }).pipe(Effect.provide(layer))
  )
})

describe("a denied receipt", () => {
  it.scoped("counts against its whole transaction in that block: no sole provider decides on the rest", () =>
    Effect.gen(function* () {
      const of = (number: number, position: string, amount: bigint) => ({
        ...transfer(number, amount),
        ...{ currency: "USDC", position, txHash: "0xlie" }
      })
      const large = [of(105, "log:1", 300_000n), of(105, "log:2", 200_000n), of(106, "log:1", 300_000n)] as const
      yield* reported(...large)
      yield* write(CorroborationRepo.setDenied(network, large[0], "a.example"))
      expect((yield* open).map((one) => [one.blockNumber, one.position, one.isDenied, one.deniedBy])).toEqual([
        [106, "log:1", false, undefined],
        [105, "log:2", true, undefined],
        [105, "log:1", true, "a.example"]
      ])
    }).pipe(Effect.provide(layer))
  )

  const [large, small] = [token("log:1", 500_000n), token("log:2")].map((one) => ({ ...one, txHash: "0xpaid" })) as [
    DatedTransfer,
    DatedTransfer
  ]

  it.scoped("that two providers corroborate does not count against other receipts of its transaction", () =>
    Effect.gen(function* () {
      yield* reported(large, small)
      yield* write(CorroborationRepo.setDenied(network, large, "liar.example"))
      yield* write(CorroborationRepo.setCorroborated(network, large, { blockTime: 105 }))
      expect(yield* open).toMatchObject([{ position: "log:2", isDenied: false }])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("has the sender that the corroborating providers report, and none where they report none", () =>
    Effect.gen(function* () {
      yield* reported({ ...large, sender: `0x${"ab".repeat(20)}` }, { ...small, sender: `0x${"ab".repeat(20)}` })
      yield* write(CorroborationRepo.setCorroborated(network, large, { sender: `0x${"cd".repeat(20)}` }))
      yield* write(setPassCorroborated(network, [{ ...small, sender: undefined }]))
      expect(yield* rows("SELECT sender FROM receipts ORDER BY position")).toEqual([
        { sender: `0x${"cd".repeat(20)}` },
        { sender: null }
      ])
    }).pipe(Effect.provide(layer))
  )
})

describe("a confirmed payment is searched again", () => {
  const searched = (id: PaymentId, to: number) => write(Searches.keep(network, [id], to))

  it.scoped("when a reorg takes money from a block above the last search", () =>
    Effect.gen(function* () {
      const { id } = yield* confirmedOnce
      const reader = yield* Reader
      const due = (final: number) =>
        Effect.map(Searches.due(reader, network, block(140), block(140), final, [], 10), (all) =>
          all.map(({ payment }) => payment)
        )
      expect(yield* due(140)).toEqual([])
      yield* tick({ head: 131, ancestor: 119 })
      expect(yield* due(119)).toEqual([])
      expect(yield* due(120)).toEqual([id])
      yield* searched(id, 125)
      expect(yield* due(140)).toEqual([])
      yield* tick({ head: 132, transfers: [transfer(128, 1000n)] })
      yield* tick({ head: 133, ancestor: 127 })
      expect(yield* due(127)).toEqual([])
      expect(yield* due(128)).toEqual([id])
      yield* searched(id, 128)
      expect(yield* Searches.searchedTo(reader, id)).toBe(128)
      expect(yield* due(140)).toEqual([])
    }).pipe(Effect.provide(layer))
  )

  it.scoped("after two providers have denied money of it", () =>
    Effect.gen(function* () {
      const { id } = yield* confirmedOnce
      yield* searched(id, 125)
      const receipts = rows<ReceiptKey>(
        "SELECT block_hash AS blockHash, address, position FROM receipts WHERE payment_id = ?",
        id
      )
      for (const receipt of yield* receipts) yield* write(CorroborationRepo.refute(network, receipt))
      expect(yield* Searches.searchedTo(yield* Reader, id)).toBe(undefined)
    }).pipe(Effect.provide(layer))
  )
})
