import { describe, expect } from "@effect/vitest"
import { type Duration, Effect, TestClock } from "effect"
import { makeCorroborator, waitsForSecond } from "../../../src/Chains/corroboration/corroborate.ts"
import type { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import { change, rows } from "../../lib/rows.ts"
import { soleProvider, someProviders } from "../../lib/soleProvider.ts"
import { nodeClient, replies } from "../../sim/nodeClient.ts"
import { headerOf } from "../../sim/shapes.ts"
import { alice, network, noting, watchOf } from "../balances/reconcileWorld.ts"
import { failing, story } from "../balances/story.ts"
import { distorted } from "../twisted.ts"

const hash = (n: number) => `0x${n.toString(16).padStart(64, "0")}`
const at = (number: number) => ({ number, hash: hash(number), time: number })

/** Uncorroborated receipts of alice: one in each of these blocks, which has no other transaction. */
const uncorroborated = (from: number, to: number, on: Network = network) =>
  change(
    `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash,
       currency, amount, payment_id, canonical, corroborated, seen_at)
     WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     SELECT ?, ?, printf('0x%064x', i), ?, 'tx:0', i, i, printf('0x%064x', i), 'ETH', '5', NULL, 1, 0, 0 FROM n`,
    ...[from, to, on.chain, on.mode, alice]
  )

/** Blocks whose receipts are corroborated. */
const corroborated = Effect.map(
  rows<{ number: number }>("SELECT block_number AS number FROM receipts WHERE corroborated = 1 ORDER BY 1"),
  (all) => all.map(({ number }) => number)
)

/** The transaction of one of these receipts. */
const payment = (of: unknown) => ({
  from: `0x${"9".repeat(40)}`,
  to: alice,
  value: "0x5",
  hash: of,
  blockHash: of,
  blockNumber: `0x${Number(of).toString(16)}`,
  transactionIndex: "0x0"
})

/**
 * A provider that lists the transactions of all blocks, and has the receipts of the given blocks only: it neither has nor
 * lacks the others. `asked`: the hashes that it was asked for.
 */
const knowing = (headOf: number | (() => number), blocks: ReadonlySet<number>, time = 0) => {
  const asked: Array<string> = []
  const client = nodeClient("second", (batch) =>
    replies("second", batch, ({ method, params: [one] }) => {
      const has = blocks.has(Number(one))
      if (method === "eth_getTransactionByHash") return has ? payment(one) : null
      if (method === "eth_getBlockByNumber") {
        const head = typeof headOf === "number" ? headOf : headOf()
        const number = one === "latest" ? head : Number(one)
        return { ...headerOf({ number, hash: hash(number), time }, hash(number - 1)), transactions: [hash(number)] }
      }
      asked.push(String(one))
      return has ? { transactionHash: one, blockHash: one, status: "0x1", logs: [] } : null
    })
  )
  return { asked, client }
}

/** A corroborator over these providers, the first of which serves. */
const corroboratingBy = Effect.fnUntraced(function* ({ aside, provider, providers }: ReturnType<typeof someProviders>) {
  const settledAt: Array<unknown> = []
  const settle: Settlement["Type"]["settle"] = (scan) => Effect.sync(() => void settledAt.push(scan.head.number))
  const watch = yield* watchOf(providers, { ...noting().settlement, settle })
  const { run } = makeCorroborator(watch)
  /** Ticks with the head `number`, a second or more apart. */
  const ticks = (count: number, number: number, apart: Duration.DurationInput = "1 second") =>
    Effect.repeatN(Effect.zipLeft(run(provider, at(number)), TestClock.adjust(apart)), count - 1)
  return {
    aside,
    settledAt,
    ticks,
    tick: (head: number) => Effect.map(run(provider, at(head)), () => watch.troubles.reason)
  }
})

/** The same over the given clients; over two equal ones where one is given. */
const corroborating = (first: RpcClient, ...others: ReadonlyArray<RpcClient>) =>
  corroboratingBy(someProviders(first, ...(others.length === 0 ? [first] : others)))

/** The same, after the patience with the others is over. */
const impatient = (...clients: Parameters<typeof someProviders>) => {
  const some = someProviders(...clients)
  return corroboratingBy({ ...some, providers: { ...some.providers, decidesAlone: () => true } })
}

/** The node has nothing in its blocks. */
const withEmptyBlocks = (client: RpcClient) =>
  distorted(client, ({ method }, answer) =>
    method === "eth_getBlockByNumber" ? { ...(answer as object), transactions: [] } : answer
  )

/** The node has this block, another one, in place of each but its head. */
const onOtherBranch = (client: RpcClient) =>
  distorted(client, ({ method, params: [of] }, answer) =>
    method === "eth_getBlockByNumber" && of !== "latest" ? { ...(answer as object), hash: hash(999) } : answer
  )

/** What each tick gives /readyz as the reason, where a chain has no other provider than this. */
const alone = (client: RpcClient) =>
  Effect.map(corroboratingBy({ ...soleProvider(client), aside: [] }), ({ tick }) => tick(50))

story("a chain's only provider decides on receipts of another one, except those that it denied", [], function* () {
  yield* uncorroborated(10, 11)
  yield* change("UPDATE receipts SET denied_by = 'gone' WHERE block_number = 11")
  const reason = yield* alone(knowing(50, new Set([10, 11])).client)
  expect(yield* reason).toMatch(/^gone denies receipts/)
  expect(yield* corroborated).toEqual([10])
  yield* TestClock.adjust("10 minutes")
  expect(yield* reason).toContain(waitsForSecond)
})

story("a chain's only provider refutes what it denies itself, whichever provider reported it", [], function* () {
  yield* uncorroborated(10, 11)
  const reason = yield* alone(withEmptyBlocks(knowing(50, new Set([10])).client))
  expect(yield* reason).toBeUndefined()
  expect(yield* rows("SELECT block_number AS block, corroborated, refuted FROM receipts ORDER BY 1")).toEqual([
    { block: 10, corroborated: 1, refuted: 0 },
    { block: 11, corroborated: 0, refuted: 1 }
  ])
})

story(
  "a chain's only provider does not decide on a receipt beside one of its transaction that is denied",
  [],
  function* () {
    yield* uncorroborated(10, 11)
    yield* change(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       canonical, corroborated, seen_at, denied_by)
     SELECT chain, mode, block_hash, address, 'log:0', block_number, block_time, tx_hash, 'USDC', '7', 1, 0, 0, 'gone'
     FROM receipts WHERE block_number = 11`
    )
    const reason = yield* alone(knowing(50, new Set([10, 11])).client)
    yield* reason
    expect(yield* corroborated).toEqual([10])
  }
)

for (const [title, other, decided] of [
  ["lacks the receipt: it does not decide", withEmptyBlocks(knowing(12, new Set()).client), []],
  ["has another block there: it does not decide", onOtherBranch(knowing(12, new Set()).client), []],
  ["has it at another time: it does not decide", knowing(12, new Set([10]), 5).client, []],
  ["cannot say: it decides", knowing(12, new Set()).client, [10]]
] as const) {
  story(`one provider decides alone, and another responds after all in that round, which ${title}`, [], function* () {
    yield* uncorroborated(10, 10)
    const { tick } = yield* impatient(knowing(12, new Set([10])).client, other)
    yield* tick(12)
    expect(yield* corroborated).toEqual(decided)
  })
}

story("every provider that denies receipts is named, and no receipt of a confirmed payment", [alice], function* () {
  yield* uncorroborated(10, 13)
  yield* change("UPDATE receipts SET denied_by = 'host ' || (block_number % 2)")
  const reason = yield* alone(knowing(50, new Set()).client)
  const named = Effect.map(reason, (text = "") =>
    Array.from(text.matchAll(/(host \d) denies .*? such as (0x\w+)/g), ([, host, tx]) => [host, Number(tx)])
  )
  expect(yield* named).toEqual([
    ["host 0", 10],
    ["host 1", 11]
  ])
  yield* change("UPDATE receipts SET payment_id = (SELECT id FROM payments) WHERE block_number IN (10, 11, 13)")
  yield* change(
    "UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1, tx_hash = '0x1', amount_received = '5'"
  )
  expect(yield* named).toEqual([["host 0", 12]])
})

describe("an uncorroborated receipt", () => {
  story("is asked about once it has its confirmations, no sooner, and then at doubling intervals", [], function* () {
    yield* uncorroborated(10, 10)
    const blocks = new Set<number>()
    const { asked, client } = knowing(12, blocks)
    const { settledAt, tick, ticks } = yield* corroborating(client)
    yield* ticks(40, 11)
    expect(asked).toEqual([])
    yield* ticks(40, 12)
    // At once, then after one second, two, four and so on.
    expect(asked).toHaveLength(6)
    blocks.add(10)
    yield* TestClock.adjust("1 minute")
    yield* tick(12)
    expect(yield* corroborated).toEqual([10])
    expect(settledAt).toEqual([0])
  })

  story("is asked about every ten minutes at least, for as long as it counts", [], function* () {
    yield* uncorroborated(10, 10)
    const { asked, client } = knowing(50, new Set())
    const { ticks } = yield* corroborating(client)
    yield* ticks(240, 50, "1 minute")
    asked.splice(0)
    yield* ticks(60, 50, "1 minute")
    expect(asked.splice(0)).toHaveLength(6)
    yield* change("UPDATE receipts SET canonical = 0")
    yield* ticks(60, 50, "1 minute")
    expect(asked).toEqual([])
  })

  story("is overdue ten minutes after it was seen, once confirmed, on its own chain and mode only", [], function* () {
    const { tick } = yield* corroborating(knowing(50, new Set()).client)
    yield* uncorroborated(9, 9, { chain: "base", mode: "live" })
    yield* uncorroborated(8, 8, { chain: "optimism", mode: "test" })
    yield* TestClock.adjust("10 minutes")
    expect(yield* tick(50)).toBeUndefined()
    yield* uncorroborated(10, 10)
    expect(yield* tick(11)).toBeUndefined()
    expect(yield* tick(12)).toContain(`${waitsForSecond}, such as ${hash(10)} of `)
    yield* change("UPDATE receipts SET seen_at = 1")
    expect(yield* tick(12)).toBeUndefined()
  })

  story("gets its turn again and again, behind more receipts than one tick looks at", [], function* () {
    yield* uncorroborated(1, 1700)
    const { asked, client } = knowing(2000, new Set([1, 2]))
    const { ticks } = yield* corroborating(client)
    for (let i = 0; i < 100 && (yield* corroborated).length < 2; i++) yield* ticks(1, 2000)
    expect(yield* corroborated).toEqual([1, 2])
    yield* TestClock.adjust("1 hour")
    asked.splice(0)
    yield* ticks(60, 2000)
    expect(new Set(asked).size).toBe(1698)
  })

  story("is asked about, however old, though a provider reports two hundred new ones a second", [], function* () {
    // Other receipts of its age are asked about, too.
    yield* uncorroborated(1, 900)
    const { ticks } = yield* corroborating(knowing(20_000, new Set([400])).client)
    for (let i = 0; i < 15; i++) {
      yield* uncorroborated(1_000 + i * 200, 1_199 + i * 200)
      yield* ticks(1, 20_000)
    }
    expect(yield* corroborated).toEqual([400])
  })

  story(
    "does not wait longer for a provider that was silent, and is asked about once that one responds",
    [],
    function* () {
      yield* uncorroborated(10, 10)
      const { client } = knowing(12, new Set([10]))
      let isSilent = true
      const { tick, ticks } = yield* corroborating(
        client,
        failing(client, () => isSilent, "timeout")
      )
      yield* ticks(40, 12)
      isSilent = false
      yield* tick(12)
      expect(yield* corroborated).toEqual([10])
    }
  )

  story("whose block the serving provider has replaced is put off once, and then refuted by two", [], function* () {
    yield* uncorroborated(10, 10)
    const { tick, ticks } = yield* corroborating(onOtherBranch(knowing(12, new Set()).client))
    const state = rows("SELECT canonical, refuted, denied_by FROM receipts")
    yield* ticks(1, 12)
    expect(yield* state).toEqual([{ canonical: 1, refuted: 0, denied_by: null }])
    yield* tick(12)
    expect(yield* state).toMatchObject([{ canonical: 0, refuted: 1 }])
  })

  story("is not denied by providers that no longer have its transaction or its block", [], function* () {
    yield* uncorroborated(10, 10)
    const pruned = distorted(knowing(12, new Set()).client, ({ method, params: [of] }, answer) =>
      method === "eth_getBlockByNumber" && of !== "latest" ? null : answer
    )
    const { tick } = yield* corroborating(pruned)
    yield* tick(12)
    expect(yield* rows("SELECT corroborated, canonical, denied_by FROM receipts")).toEqual([
      { corroborated: 0, canonical: 1, denied_by: null }
    ])
  })

  story("that two providers have counts, even though two others deny it", [], function* () {
    yield* uncorroborated(10, 10)
    const having = knowing(12, new Set([10])).client
    const denying = withEmptyBlocks(knowing(12, new Set()).client)
    const { tick } = yield* corroborating(having, denying, denying, having)
    yield* tick(12)
    expect(yield* rows("SELECT corroborated, canonical, refuted, denied_by FROM receipts")).toEqual([
      { corroborated: 1, canonical: 1, refuted: 0, denied_by: null }
    ])
  })
})

describe("a second provider whose own head gives a receipt too few confirmations", () => {
  story("does not corroborate it with one block less, and does with that block", [], function* () {
    yield* uncorroborated(10, 10)
    let head = 11
    const { tick } = yield* corroborating(knowing(() => head, new Set([10])).client)
    yield* tick(12)
    expect(yield* corroborated).toEqual([])
    head = 12
    yield* TestClock.adjust("10 minutes")
    yield* tick(12)
    expect(yield* corroborated).toEqual([10])
  })

  for (const [title, headAt, reasons] of [
    ["in a cooldown where its head stays there for a minute", () => 11, ["behind"]],
    ["not in a cooldown once they are enough", () => 12, []],
    ["not in a cooldown where its head moves", (minutes: number) => 5 + minutes, []]
  ] as const) {
    story(`is ${title}`, [], function* () {
      yield* uncorroborated(4, 10)
      let minutes = 0
      const second = knowing(() => headAt(minutes), new Set()).client
      const { aside, tick } = yield* corroborating(knowing(13, new Set()).client, second)
      yield* tick(12)
      expect(aside).toEqual([])
      for (minutes = 1; minutes <= 3; minutes++) {
        yield* TestClock.adjust("1 minute")
        if (aside.length === 0) yield* tick(12)
      }
      expect(aside).toEqual(reasons)
      expect(yield* corroborated).toEqual([])
    })
  }
})
