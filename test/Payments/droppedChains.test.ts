import { expect } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Ledger from "../../src/Chains/ledger/LedgerRepo.ts"
import { refuseDroppedChains } from "../../src/Payments/openNeeds.ts"
import type { StoreUnavailable, Writer } from "../../src/Sql.ts"
import * as Sql from "../../src/Sql.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testChain, testSettingsLayer } from "../lib/settings.ts"
import { execute, inTransaction, temporaryDatabase } from "../lib/store.ts"

const insert = (n: number, status: string, chain: string, mode = "test", token: number | null = null) =>
  execute(
    `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, token, chain, address, wallet,
       wallet_index, status, created_at, expires_at, metadata, ended_at)
     VALUES (?, ?, 'a', ?, ?, '1', ?, ?, ?, ?, 'w', ?, ?, 0, 1, '{}', ?)`,
    [
      ...[`pay_${n}`, `${n}`, mode, `ref-${n}`, token === null ? "ETH" : "USDC", token, chain, `0x${n}`, n, status],
      status === "expired" ? 1 : null
    ]
  )

/** A database with these, closed. */
const storeOf = (...stored: ReadonlyArray<Effect.Effect<unknown, StoreUnavailable, Writer>>) =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const account = execute("INSERT INTO accounts (id, name, created_at) VALUES ('a', 'A', 0)")
    const wallet = execute("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 9)")
    yield* Effect.all([account, wallet, ...stored], { concurrency: 1 }).pipe(Effect.provide(Sql.layer(path)))
    return path
  })

/** Why a start with these chains is refused; undefined where it is not. */
const refusal = (path: string, chains: ReadonlyArray<ReturnType<typeof testChain>>) =>
  refuseDroppedChains.pipe(
    Layer.provide(Sql.layer(path)),
    Layer.provide(testSettingsLayer(path, { chains })),
    Layer.build,
    Effect.as(undefined),
    Effect.catchTag("ChainDropped", ({ message }) => Effect.succeed(message)),
    Effect.scoped
  )

liveTest("a start without a chain that open payments wait for is refused", function* () {
  const path = yield* storeOf(
    insert(1, "pending", "base"),
    insert(2, "detecting", "base"),
    insert(3, "expired", "optimism"),
    insert(4, "pending", "polygon", "live")
  )
  const livePolygon = testChain({ chain: "polygon", mode: "live" })
  const refused = yield* refusal(path, [livePolygon])
  expect(refused).toContain("chains.base.test: 2 open payments need this chain")
  expect(refused).toContain("tilld payments abandon --chain base --mode test")
  // The same chain in the other mode is another one.
  const inTestOnly = yield* refusal(path, [testChain({ chain: "base" }), testChain({ chain: "polygon" })])
  expect(inTestOnly).toContain("chains.polygon.live: 1 open payment needs this chain")
  expect(yield* refusal(path, [testChain({ chain: "base" }), livePolygon])).toBeUndefined()
})

const contract = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
const usdc = { symbol: "USDC", address: contract.toLowerCase(), decimals: 6 } as const
const token = (id: number, chain: string) =>
  execute("INSERT INTO tokens VALUES (?, ?, 'test', 'USDC', ?, 6)", [id, chain, contract])

liveTest("a start without the contract that open payments ask for is refused", function* () {
  const path = yield* storeOf(
    token(1, "base"),
    token(2, "polygon"),
    insert(1, "detecting", "base", "test", 1),
    insert(2, "pending", "base"),
    insert(3, "expired", "polygon", "test", 2)
  )
  const refused = `chains.base.test.tokens.USDC: 1 open payment needs the contract ${contract}: put it back`
  const other = { ...usdc, address: `0x${"b".repeat(40)}` }
  // Neither another contract for the symbol, nor another symbol for the contract.
  for (const tokens of [[], [other], [{ ...usdc, symbol: "USDT" as const }]]) {
    const message = yield* refusal(path, [testChain({ chain: "base", tokens })])
    expect(message).toContain(refused)
    expect(message).toContain("tilld payments abandon --chain base --mode test --token USDC")
    expect(message).not.toContain("polygon")
  }
  // Amounts that were taken with six decimals would be shown, and sent back, by others: also those of ended payments.
  const eighteen = [{ ...usdc, decimals: 18 }]
  const wrong = `tokens.USDC.decimals: amounts of ${contract} have been taken with 6 decimals`
  expect(yield* refusal(path, [testChain({ chain: "base", tokens: eighteen })])).toContain(`chains.base.test.${wrong}`)
  const ended = [testChain({ chain: "base", tokens: [usdc] }), testChain({ chain: "polygon", tokens: eighteen })]
  expect(yield* refusal(path, ended)).toContain(`chains.polygon.test.${wrong}`)
})

liveTest("a start with another chain id is refused, and with other decimals of an unused token not", function* () {
  const path = yield* storeOf(
    token(1, "base"),
    inTransaction(
      Ledger.startScan({ chain: "base", mode: "test" }, { number: 1, hash: "0x1", time: 1 }, undefined, 8_453)
    )
  )
  const chains = (chainId: number) => [testChain({ chain: "base", chainId, tokens: [{ ...usdc, decimals: 18 }] })]
  expect(yield* refusal(path, chains(8_453))).toBeUndefined()
  const refused = "chains.base.test.chain_id: chain 8453 has been read here, and all that is stored is of that chain"
  expect(yield* refusal(path, chains(1))).toContain(refused)
})

liveTest("a start without a chain with money of one provider alone is refused, whatever its payment", function* () {
  const receipt = (of: string | null, to: string, chain: string) =>
    execute(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
         payment_id, canonical, corroborated, seen_at)
       VALUES (?, 'test', '0xb', ?, 'log:1', 1, 1, '0x1', 'USDC', '5', ?, 1, 0, 0)`,
      [chain, to, of]
    )
  const path = yield* storeOf(
    insert(1, "expired", "base"),
    insert(2, "pending", "polygon"),
    receipt("pay_1", "0x1", "base"),
    receipt(null, "0xlost", "base"),
    receipt("pay_2", "0x2", "polygon")
  )
  const refused = yield* refusal(path, [testChain({ chain: "polygon" })])
  expect(refused).toMatch(/chains\.base\.test: money of (pay_1, 0xlost|0xlost, pay_1) is not yet corroborated there/)
  expect(yield* refusal(path, [testChain({ chain: "polygon" }), testChain({ chain: "base" })])).toBeUndefined()
})
