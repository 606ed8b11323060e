import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as LedgerRepo from "../../src/Chains/ledger/LedgerRepo.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { alarmedAbout, block, elsewhere, start, tick, transfer, usdcElsewhere, wallet, withChains } from "./settling.ts"

const live: Network = { chain: "base", mode: "live" }
const one = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
const two = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
const ofLive = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"

const stored = Effect.flatMap(Reader, (reader) =>
  reader.all("SELECT address, chain, mode, amount, outcome FROM exceptions ORDER BY length(amount), amount")
)

it.scoped("money of lost payments is kept apart by address, chain and mode", () =>
  Effect.gen(function* () {
    yield* start
    const writer = yield* Writer
    yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        for (const [index, [address, mode]] of [
          [one, "test"] as const,
          [two, "test"] as const,
          [ofLive, "live"] as const
        ].entries()) {
          yield* tx.run("INSERT INTO gap_addresses VALUES (?, ?, ?, ?, 0)", [address, mode, wallet, 7 + index])
        }
        for (const other of [elsewhere, live]) yield* LedgerRepo.startScan(other, block(100), undefined)
      })
    )
    const to = (address: string) => ({ address: address.toLowerCase() })
    yield* tick({ head: 130, on: live, transfers: [transfer(120, 8n, to(ofLive))] })
    yield* tick({ head: 130, on: elsewhere, transfers: [{ ...usdcElsewhere(120, 7n), ...to(one) }] })
    yield* tick({ head: 130, transfers: [transfer(120, 5n, to(one)), transfer(125, 6n, to(two))] })
    yield* tick({ head: 131, ancestor: 124 })
    expect(yield* stored).toEqual([
      { ...to(one), chain: "base", mode: "test", amount: "5", outcome: null },
      { ...to(two), chain: "base", mode: "test", amount: "6", outcome: "gone" },
      { ...to(one), chain: "optimism", mode: "test", amount: "7", outcome: null },
      { ...to(ofLive), chain: "base", mode: "live", amount: "8", outcome: null }
    ])
    const about = { service: "settlement", chain: "base", mode: "test", currency: "ETH" }
    expect(alarmedAbout).toEqual([
      { ...about, mode: "live", ...to(ofLive), amount: "8", txHash: "0xt120" },
      { ...about, chain: "optimism", ...to(one), amount: "7", currency: "USDC", txHash: "0xt120" },
      { ...about, ...to(one), amount: "5", txHash: "0xt120" },
      { ...about, ...to(two), amount: "6", txHash: "0xt125" }
    ])
  }).pipe(Effect.provide(withChains({}, elsewhere, live)))
)
