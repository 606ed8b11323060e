import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { liveTest } from "../lib/scopedTest.ts"
import { installation } from "./installation.ts"

const paymentId = (n: number) => `pay_${String(n).repeat(22)}`

const insertPayment = (n: number, chain: string, status: string) => `
  INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
    wallet_index, status, created_at, expires_at, created_head, metadata, ended_at)
  VALUES ('${paymentId(n)}', '${n}', 'default', 'test', 'order ${n}', '1000', 'ETH', '${chain}',
    '0x000000000000000000000000000000000000000${n}', 'w', ${n}, '${status}', 0, 1000, 100, '{}',
    ${status === "expired" ? 2000 : "NULL"});`

/** One that expired and was paid late, one that waits on base and one on a chain that is not configured. */
const rows = `
  INSERT INTO wallets (fingerprint, next_index, account_number) VALUES ('w', 10, 3);
  ${insertPayment(1, "base", "expired")}
  ${insertPayment(2, "base", "pending")}
  ${insertPayment(3, "polygon", "pending")}
  INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
  VALUES ('base', 'test', 1, 150, '0xc', 0, 1);
  INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
    sender, payment_id, canonical, corroborated, seen_at)
  VALUES ('base', 'test', '0xb', '0x0000000000000000000000000000000000000001', 'tx:0', 101, 9000, '0xlate', 'ETH', '1000',
    '0x${"7".repeat(40)}', '${paymentId(1)}', 1, 1, 3000);
  INSERT INTO exceptions (id, address, key, payment_id, account_id, wallet, wallet_index, kind, chain, mode, tx_hash, sender,
    currency, amount, opened_at)
  VALUES ('exc_1', '0x0000000000000000000000000000000000000001', 'late:base:0xlate:ETH', '${paymentId(1)}', 'default', 'w', 1,
    'late', 'base', 'test', '0xlate', '0x${"7".repeat(40)}', 'ETH', '1000', 3000);`

/** An installation with these rows, and its daemon. */
const withRows = Effect.gen(function* () {
  const { database, folder, start, tilld: run } = yield* installation
  const daemon = yield* start()
  const tilld = (...args: ReadonlyArray<string>) => run(args)
  const json = (...args: ReadonlyArray<string>) =>
    Effect.map(tilld(...args, "--json"), ({ code, stderr, stdout }) => {
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
      expect(stdout).toBe(`${JSON.stringify(JSON.parse(stdout))}\n`)
      return JSON.parse(stdout)
    })
  const store = new Database(database)
  store.exec(rows)
  store.close()
  const execute = (sql: string) => {
    const open = new Database(database)
    open.exec(sql)
    open.close()
  }
  return { tilld, json, execute, daemon, start, config: join(folder, "tilld.toml") }
})

const open = { kind: "late", chain: "base", amount: "1000", txHash: "0xlate" }

liveTest("payments accept and refunded: one exception alone, by its own ID, and the same again", function* () {
  const { json, tilld } = yield* withRows
  const sent = `0x${"b".repeat(64)}`
  expect(yield* json("payments", "exceptions")).toMatchObject([
    {
      ...{ ...open, id: "exc_1", payment: paymentId(1) },
      ...{ from: `0x${"7".repeat(40)}`, derivationIndex: 1, path: "m/44'/60'/3'/0/1" }
    }
  ])
  const listed = (yield* tilld("payments", "exceptions")).stdout
  expect(listed).toMatch(new RegExp(`${paymentId(1)} {2}order 1 {4}.* 0\\.000000000000001000 ETH `))
  expect((yield* tilld("payments", "show", paymentId(1))).stdout).toMatch(
    /open {2}late {2}0\.000000000000001000 ETH {2}base {2}0xlate/
  )
  const part = yield* json("payments", "refunded", "exc_1", "--amount", "400", "--tx", sent, "--note", "half of it")
  expect(part).toEqual({
    payment: expect.objectContaining({ id: paymentId(1), status: "expired" }),
    exceptions: [
      expect.objectContaining({ id: "exc_1", amount: "600", amountRefunded: "400", resolutionTxHash: sent })
    ],
    refund: expect.objectContaining({ exceptions: ["exc_1"], amount: "400", txHash: sent, reason: "half of it" })
  })
  const shown = (yield* tilld("payments", "show", paymentId(1))).stdout
  expect(shown).toContain(`from 0x${"7".repeat(40)}  at m/44'/60'/3'/0/1`)
  expect(shown).toContain(`by ${sent}\n`)
  const accepted = yield* json("payments", "accept", "exc_1", "--note", "fine")
  expect(accepted).toMatchObject({
    payment: { status: "confirmed", txHash: "0xlate" },
    exceptions: [{ id: "exc_1", resolution: "accepted", note: "fine" }]
  })
  expect(yield* json("payments", "accept", "exc_1")).toEqual(accepted)
  expect(yield* json("payments", "exceptions")).toEqual([])
  const { events, transitions } = yield* json("payments", "show", paymentId(1))
  expect(transitions).toMatchObject([{ from: "expired", to: "confirmed" }])
  expect(events.slice(-2)).toMatchObject([{ kind: "payment.confirmed" }, { kind: "payment.exception" }])
  const other = yield* tilld("payments", "refunded", "exc_1", "--json")
  expect(other).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("exc_1 was accepted at") })
})

liveTest(
  "payments refunded: part of it by its amount, the rest by its exception, named later, dropped and listed",
  function* () {
    const { json, tilld } = yield* withRows
    const part = yield* json("payments", "refunded", paymentId(1), "--amount", "400")
    expect(part).toMatchObject({
      refund: { payment: paymentId(1), exceptions: ["exc_1"], amount: "400", currency: "ETH", status: "noted" },
      exceptions: [{ ...open, amount: "600", amountRefunded: "400" }]
    })
    const shown = (yield* tilld("payments", "show", paymentId(1))).stdout
    expect(shown).toContain("after 0.000000000000000400 ETH that were sent back")
    expect(shown.match(/^(received|refunded|kept): .*$/gm)).toEqual([
      "received: 0.000000000000001000 ETH",
      "refunded: 0.000000000000000400 ETH",
      "kept: 0.000000000000000600 ETH"
    ])
    const whole = (amount: number) => `0.000000000000000${amount} ETH  base  ${paymentId(1)}  order 1`
    const rest = yield* tilld("payments", "refunded", "exc_1")
    expect(rest).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^refund: .*  noted  ref_.*  ${whole(600)}  no transaction\n`))
    })
    expect(yield* json("payments", "show", paymentId(1))).toMatchObject({
      exceptions: [{ ...open, resolution: "refunded" }]
    })
    const accepted = yield* tilld("payments", "accept", paymentId(1), "--json")
    expect(accepted).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("was sent back") })
    const txHash = `0x${"c".repeat(64)}`
    expect(yield* json("payments", "refunded", part.refund.id, "--tx", txHash)).toMatchObject({ refund: { txHash } })
    expect(yield* json("refunds", "drop", part.refund.id)).toMatchObject({ id: part.refund.id, status: "failed" })
    expect(yield* json("payments", "exceptions")).toMatchObject([{ ...open, amount: "400", amountRefunded: "600" }])
    expect(yield* json("refunds", "list", "--mode", "test", "--status", "failed")).toMatchObject([{ txHash }])
    const dropped = `failed  ${part.refund.id}  ${whole(400)}  ${txHash}`
    for (const command of [
      ["list", "--mode", "test"],
      ["drop", part.refund.id]
    ] as const) {
      expect((yield* tilld("refunds", ...command)).stdout, command[0]).toContain(dropped)
    }
  }
)

liveTest("payments abandon: frees the configuration of a chain once that is put back", function* () {
  const { config, daemon, json, start, tilld } = yield* withRows
  yield* daemon.end("SIGTERM")
  const dropped = yield* tilld("serve")
  expect(dropped).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/put it back.* tilld payments abandon --chain polygon --mode test/)
  })
  const without = readFileSync(config, "utf8")
  writeFileSync(config, `${without}[chains.polygon.test]\nrpc_urls = ["http://127.0.0.1:1"]\n`)
  const again = yield* start()
  const abandon = ["payments", "abandon", "--chain", "polygon", "--mode", "test"]
  expect(yield* json(...abandon)).toEqual({ chain: "polygon", mode: "test", abandoned: 1, givenUp: 0 })
  expect(yield* json(...abandon)).toEqual({ chain: "polygon", mode: "test", abandoned: 0, givenUp: 0 })
  expect(yield* json("payments", "show", paymentId(3))).toMatchObject({
    payment: { status: "failed", failureReason: "abandoned" },
    events: [{ kind: "payment.failed" }]
  })
  expect(yield* json("payments", "show", paymentId(2))).toMatchObject({ payment: { status: "pending" } })
  yield* again.end("SIGTERM")
  writeFileSync(config, without)
  yield* start()
})

liveTest("payments show: says of each receipt that does not count why", function* () {
  const { execute, json, tilld } = yield* withRows
  const receipt = (n: number, chain: string, over: string) =>
    `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       payment_id, seen_at, canonical, corroborated, refuted, denied_by)
     VALUES ('${chain}', 'test', '0xc${n}', '0x0000000000000000000000000000000000000002', 'tx:${n}', ${n}, 9, '0x${n}', 'ETH',
       '${n}', '${paymentId(2)}', 3000, ${over});`
  execute(receipt(1, "polygon", "1, 0, 0, NULL"))
  execute(receipt(2, "polygon", "0, 0, 1, 'rpc.example'"))
  execute(receipt(3, "polygon", "0, 1, 0, NULL"))
  execute(receipt(4, "base", "0, 0, 0, NULL"))
  execute(receipt(5, "base", "1, 0, 0, 'rpc.example'"))
  expect(yield* json("payments", "abandon", "--chain", "polygon", "--mode", "test")).toMatchObject({ givenUp: 1 })
  const shown = yield* json("payments", "show", paymentId(2))
  expect(shown.receipts.map((each: Record<string, unknown>) => [each["txHash"], each["uncounted"]])).toEqual([
    ["0x1", "given_up"],
    ["0x2", "denied"],
    ["0x3", "orphaned"],
    ["0x4", "orphaned"],
    ["0x5", undefined]
  ])
  const text = (yield* tilld("payments", "show", paymentId(2))).stdout
  expect(text.match(/(?<= {2}0x\d {2}block ).*/g)).toEqual([
    "1  does not count: it was given up with tilld payments abandon, before a second provider had it",
    "2  does not count: two providers deny it",
    "3  does not count: a reorg orphaned it",
    "4  does not count: a reorg orphaned it",
    "5  rpc.example denies it, and no second provider has it"
  ])
})

liveTest("payments show: by address, reference or transaction; of several it lists all, and shows none", function* () {
  const { execute, json, tilld } = yield* withRows
  const hash = `0x${"a".repeat(64)}`
  const receipt = (n: number) =>
    `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       payment_id, canonical, corroborated, seen_at)
     VALUES ('base', 'test', '0xc', '0x000000000000000000000000000000000000000${n}', 'log:0', 102, 9, '${hash}', 'USDC', '5',
       '${paymentId(n)}', 1, 1, 3000);`
  execute(receipt(2))
  for (const of of ["order 2", "0x0000000000000000000000000000000000000002", hash, paymentId(2)]) {
    expect(yield* json("payments", "show", of), of).toMatchObject({ payment: { id: paymentId(2), chainId: 84532 } })
  }
  execute(receipt(1))
  const several = yield* tilld("payments", "show", hash, "--json")
  expect(several).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("stands for several payments") })
  for (const n of [1, 2]) expect(several.stderr).toContain(`${paymentId(n)}  default  test  `)
  // Of more than twenty it says that there are more.
  execute(`
    WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 28)
    INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
      wallet_index, status, created_at, expires_at, created_head, metadata)
    SELECT 'pay_' || i, i, 'default', 'test', 'many ' || i, '1000', 'ETH', 'base', '0xmany' || i, 'w', i, 'pending', 0, 1000,
      100, '{}' FROM n;
    INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
      payment_id, canonical, corroborated, seen_at)
    SELECT 'base', 'test', '0xc', address, 'log:0', 102, 9, '${hash}', 'USDC', '5', id, 1, 1, 3000 FROM payments
    WHERE merchant_ref LIKE 'many %';`)
  const many = yield* tilld("payments", "show", hash)
  expect(many.stderr.match(/^ {2}pay_.*$/gm)).toHaveLength(20)
  expect(many.stderr).toMatch(/\n {2}and more\n$/)
  const none = yield* tilld("payments", "show", "order 9")
  expect(none).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("There is no payment order 9") })
})

liveTest("payments refunded: of what counts for an open payment, by its amount and once", function* () {
  const { execute, json, tilld } = yield* withRows
  const id = paymentId(2)
  execute(
    `UPDATE payments SET status = 'detecting', created_head = 100, amount_received = '5' WHERE id = '${id}';
     INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       payment_id, canonical, corroborated, seen_at)
     SELECT 'base', 'test', '0x110', lower(address), 'log:0', 110, 1, '0xcame', currency, '5', id, 1, 1, 1 FROM payments
     WHERE id = '${id}';`
  )
  const refund = ["payments", "refunded", id, "--tx", `0x${"A".repeat(64)}`, "--note", "changed her mind"]
  for (const [reason, ...args] of [
    ["--amount must be given, and be at most 0.000000000000000005 ETH", ...refund],
    ["--amount must be at most 0.000000000000000005 ETH (5 in base units)", ...refund, "--amount", "6"]
  ] as const) {
    expect((yield* tilld(...args, "--json")).stderr, reason).toContain(reason)
  }
  const noted = yield* json(...refund, "--amount", "5")
  expect(noted).toMatchObject({
    payment: { status: "pending" },
    refund: { amount: "5", txHash: `0x${"a".repeat(64)}`, reason: "changed her mind" },
    exceptions: []
  })
  expect(noted.payment).not.toHaveProperty("amountReceived")
  expect(yield* json(...refund, "--amount", "5")).toMatchObject({ payment: noted.payment })
  expect((yield* tilld("payments", "refunded", id, "--amount", "5")).stderr).toContain("No ETH on base of")
})

liveTest("a decision that is not possible ends with its reason", function* () {
  const { tilld } = yield* withRows
  const hash = `0x${"1".repeat(64)}`
  for (const [code, reason, ...args] of [
    [1, "nothing to accept", "accept", paymentId(2)],
    [1, "could not be asked", "accept", paymentId(1), "--tx", hash],
    [1, "There is no payment", "accept", "pay_none"],
    [1, "There is no payment", "refunded", "pay_none"],
    [1, "There is no exception exc_none", "accept", "exc_none"],
    [1, "There is no exception exc_none", "refunded", "exc_none"],
    [1, "There is no refund ref_none", "refunded", "ref_none", "--tx", hash],
    [1, "--tx must be given", "refunded", "ref_none"],
    [1, "--tx must be 0xlate", "accept", "exc_1", "--tx", hash],
    [1, "--amount must be at most 0.000000000000001 ETH", "refunded", "exc_1", "--amount", "1001"],
    [2, "--note must have", "accept", "exc_1", "--note", ""],
    [2, "--tx must be", "refunded", "exc_1", "--tx", "0x1"],
    [2, "--amount must be", "refunded", paymentId(1), "--amount", "0.5"],
    [1, "There is no payment pay_none", "exceptions", "--payment", "pay_none"],
    [1, "There is no exception exc_none", "exceptions", "--after", "exc_none"],
    [2, "--tx must be", "accept", paymentId(1), "--tx", "0x1"],
    [2, "--chain", "abandon", "--mode", "test"],
    [1, "this one is expired: it has ended", "cancel", paymentId(1)],
    [1, "There is no payment pay_none", "cancel", "pay_none"]
  ] as const) {
    const ended = yield* tilld("payments", ...args, "--json")
    expect(ended, args.join(" ")).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(reason) })
  }
})
