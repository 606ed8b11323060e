import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import * as Balances from "../../src/Chains/BalancesRepo.ts"
import type { Asked } from "../../src/Chains/balances.ts"
import * as Ledger from "../../src/Chains/LedgerRepo.ts"
import { readBalances } from "../../src/Chains/oracle.ts"
import { RpcError } from "../../src/Chains/Rpc.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { BalanceModel, contract, type Deed, stranger } from "./BalanceModel.ts"
import { depsOf, inStore, look, network, owe, receipts, round, scanTo, told, wanted } from "./oracleWorld.ts"

const alice = `0x${"a1".repeat(20)}`
const bob = `0x${"b2".repeat(20)}`
const carol = `0x${"c3".repeat(20)}`
const nothing: Deed = { from: stranger, to: contract, value: 0n, names: [], fails: false, moves: [] }
const direct = (to: string, value: bigint): Deed => ({ ...nothing, to, value })
/** From inside a contract; `names` what the calldata does. */
const inside = (to: string, amount: bigint, names: ReadonlyArray<string> = []): Deed => ({
  ...nothing,
  names,
  moves: [{ from: contract, to, amount }]
})

const scan = Effect.flatMap(Reader, (reader) => Ledger.scan(reader, network))
const isDue = (model: BalanceModel) =>
  Effect.flatMap(Reader, (reader) => Balances.due(reader, network, model.head, 60_000))
const rows = Effect.flatMap(Reader, (reader) =>
  reader.all<{ readonly address: string }>(
    "SELECT address, number, balance, nonce FROM balances ORDER BY address, number"
  )
)

describe("a round", () => {
  it.scoped("takes one call for a thousand addresses while nothing happens, and keeps nothing of them", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("quiet")
      yield* scanTo(model.head)
      const all = Array.from({ length: 1001 }, (_, i) => `0x${(i + 1).toString(16).padStart(40, "d")}`)
      const quiet = (address: string): Asked => ({
        address,
        own: true,
        known: { number: 0, balance: 0n, nonce: 0, assumed: true },
        comparedTo: 0,
        credits: [],
        withNonce: false,
        doubts: []
      })
      model.mine([])
      const reading = yield* readBalances(depsOf(model.client), model.head, all.map(quiet))
      expect(reading).toMatchObject({ transfers: [], rows: [], replaced: [] })
      expect(model.calls.map(({ method }) => method)).toEqual(["eth_call", "eth_call"])
      model.calls.splice(0)
      yield* readBalances(depsOf(model.client), model.head, all.slice(1).map(quiet))
      expect(model.calls.length).toBe(1)
    }).pipe(inStore)
  )

  it.scoped("moves `checked` to its block, and is stored only on the head that it was read at", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("checked")
      yield* scanTo(model.head)
      const id = yield* owe(alice)
      model.mine([direct(alice, 5n)])
      const at = model.head
      yield* scanTo(at)
      const asked = yield* wanted(at)
      model.mine([])
      yield* scanTo(model.head)
      expect((yield* look(depsOf(model.client), at, asked)).stored).toBe(false)
      expect(yield* receipts).toEqual([])
      expect((yield* scan)?.checked).toBeUndefined()

      const { stored, touched } = yield* round(depsOf(model.client), model.head)
      expect([stored, touched]).toEqual([true, [id]])
      expect((yield* scan)?.checked).toEqual({ number: 2, time: 20 })
      expect(yield* told(alice)).toEqual(["1 tx:0 5"])
      // The block of the receipt is one that later reorgs are measured against.
      const reader = yield* Reader
      expect(yield* Ledger.newestBlockAt(reader, network, 1)).toMatchObject({ number: 1 })
    }).pipe(inStore)
  )

  it.scoped("is of no use when its block has left the chain meanwhile", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("reorg")
      yield* scanTo(model.head)
      yield* owe(alice)
      model.mine([direct(alice, 5n)])
      model.mine([])
      const at = model.head
      yield* scanTo(at)
      const asked = yield* wanted(at)
      const { client } = model
      let batches = 0
      const moving = {
        ...client,
        send: (calls: Parameters<typeof client.send>[0]) =>
          Effect.suspend(() => {
            // After the balances and the nonces have been read, by the block's hash.
            if (batches++ === 2) {
              const { time } = model.head
              model.rollback(2)
              model.mine([])
              model.mine([], time + 1)
            }
            return client.send(calls)
          })
      }
      const read = yield* Effect.either(readBalances(depsOf(moving), at, asked))
      expect(Either.isLeft(read) && read.left).toMatchObject({ _tag: "RpcError", reason: "inconsistent" })
    }).pipe(inStore)
  )

  it.scoped("finds the block of what an earlier provider denied", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("denied")
      yield* scanTo(model.head)
      yield* owe(alice)
      model.mine([inside(alice, 5n)])
      model.mine([])
      const { client } = model
      const denying = {
        ...client,
        send: (calls: Parameters<typeof client.send>[0]) => Effect.succeed(calls.map(() => `0x${"0".repeat(64)}`))
      }
      yield* round(depsOf(denying), model.head)
      expect((yield* scan)?.checked?.number).toBe(2)
      expect(yield* receipts).toEqual([])
      model.mine([])
      yield* round(depsOf(client), model.head)
      expect((yield* told(alice)).map((line) => line.replace(/0x\w+/, "?"))).toEqual(["1 call:? 5"])
    }).pipe(inStore)
  )

  it.scoped("keeps what no second provider has agreed to apart, but for what nobody can tell of anyway", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("agreed")
      model.traces = false
      yield* scanTo(model.head)
      yield* owe(alice)
      yield* owe(bob)
      model.mine([direct(alice, 5n), inside(bob, 6n)])
      yield* scanTo(model.head)
      yield* look(depsOf(model.client), model.head, yield* wanted(model.head), { agreed: false })
      expect((yield* receipts).map(({ agreed, position }) => [position, agreed])).toEqual([
        ["tx:0", 0],
        ["unattributed", 1]
      ])
    }).pipe(inStore)
  )

  it.scoped("goes on from a reorg: what was found above the ancestor is looked for again", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("again")
      yield* scanTo(model.head)
      yield* owe(alice)
      model.mine([direct(alice, 5n)])
      model.mine([inside(alice, 7n), { ...nothing, from: alice, to: stranger, value: 1n }])
      yield* round(depsOf(model.client), model.head)
      const before = yield* told(alice)
      expect(before.length).toBe(2)
      model.rollback(1)
      const ancestor = model.head
      model.mine([])
      model.mine([inside(alice, 8n, [alice])])
      const writer = yield* Writer
      yield* writer.write(Ledger.orphanAbove(network, ancestor))
      yield* round(depsOf(model.client), model.head)
      const after = yield* told(alice)
      expect(after.map((line) => line.replace(/call:\w+/, "call"))).toEqual(["1 tx:0 5", "3 call 8"])
    }).pipe(inStore)
  )
})

describe("an error about one address", () => {
  /** A node that has no good block for one address. */
  const refusing = (model: BalanceModel, address: string) => ({
    ...model.client,
    send: (calls: Parameters<typeof model.client.send>[0]) =>
      calls.some(
        ({ method, params }) =>
          method === "eth_getBlockByNumber" && params[1] === true && model.came(address, 0).has(Number(params[0]))
      )
        ? new RpcError({
            host: "model",
            method: "eth_getBlockByNumber",
            reason: "garbage",
            detail: "as the test wants"
          })
        : model.client.send(calls)
  })

  it.scoped("leaves that one out and not the others, and `checked` waits, until it is given up", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("refused")
      yield* scanTo(model.head)
      const id = yield* owe(alice)
      yield* owe(bob)
      model.mine([direct(alice, 5n)])
      model.mine([direct(bob, 6n)])
      const deps = depsOf(refusing(model, alice))
      const { reading, stored } = yield* round(deps, model.head)
      expect(stored).toBe(true)
      expect(reading.failed).toMatchObject([{ address: alice, error: { reason: "garbage" }, givenUp: false }])
      expect((yield* receipts).map(({ address, position }) => [address, position])).toEqual([[bob, "tx:0"]])
      expect((yield* scan)?.checked).toBeUndefined()

      const last = yield* look(deps, model.head, yield* wanted(model.head), { hopeless: new Set([alice]) })
      expect(last.touched).toEqual([id])
      expect(yield* told(alice)).toEqual(["2 unattributed 5"])
      expect((yield* scan)?.checked?.number).toBe(2)
      model.mine([])
      expect((yield* round(deps, model.head)).reading.failed).toEqual([])
    }).pipe(inStore)
  )
})

describe("a block of many calls", () => {
  it.scoped("is traced up to a limit, and so is a round", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("dust")
      yield* scanTo(model.head)
      const dusted = Array.from({ length: 5 }, (_, i) => `0x${(i + 1).toString(16).padStart(40, "d")}`)
      for (const address of dusted) yield* owe(address)
      // Nothing names them, and what pays them comes last.
      const others = Array.from({ length: 150 }, () => nothing)
      for (const address of dusted) model.mine([...others, inside(address, 1n), inside(address, 1n)])
      yield* round(depsOf(model.client), model.head)
      const traced = model.calls.filter(({ method }) => method === "debug_traceTransaction").length
      expect(traced).toBe(300)
      expect((yield* receipts).map(({ amount, position }) => [position, amount])).toEqual(
        dusted.map(() => ["unattributed", "2"])
      )
      const one = new BalanceModel("dust of one")
      const asked: Asked = {
        address: alice,
        own: true,
        known: { number: 0, balance: 0n, nonce: 0, assumed: true },
        comparedTo: 0,
        credits: [],
        withNonce: false,
        doubts: []
      }
      one.mine([...others, inside(alice, 1n)])
      yield* readBalances(depsOf(one.client), one.head, [asked])
      expect(one.calls.filter(({ method }) => method === "debug_traceTransaction").length).toBe(100)
    }).pipe(inStore)
  )
})

describe("an unattributed receipt", () => {
  it.scoped("is tried again as its age doubles, and gives its place to what is found, once, with the same total", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("doubt")
      model.traces = false
      yield* scanTo(model.head)
      const id = yield* owe(alice)
      // Two transactions, neither of which names anybody.
      model.mine([inside(alice, 3n), inside(alice, 4n)])
      yield* round(depsOf(model.client), model.head)
      expect(yield* told(alice)).toEqual(["1 unattributed 7"])
      const tried = Effect.fnUntraced(function* (time: number) {
        model.mine([], time)
        model.calls.splice(0)
        const { client } = model
        // A provider of which nothing has been learnt.
        const { reading, touched } = yield* round(depsOf({ ...client }), model.head)
        const traces = model.calls.filter(({ method }) => method === "debug_traceTransaction").length
        return { traces, replaced: reading.replaced.length, touched }
      })
      expect((yield* tried(20)).traces).toBe(2)
      expect((yield* tried(26)).traces).toBe(2)
      expect((yield* tried(27)).traces).toBe(0)
      expect(yield* told(alice)).toEqual(["1 unattributed 7"])
      model.traces = true
      expect(yield* tried(60)).toEqual({ traces: 2, replaced: 1, touched: [id] })
      expect((yield* told(alice)).map((line) => line.replace(/0x\w+/, "?")).sort()).toEqual([
        "1 call:? 3",
        "1 call:? 4"
      ])
      expect(yield* tried(100_000)).toEqual({ traces: 0, replaced: 0, touched: [] })
    }).pipe(inStore)
  )

  it.scoped("that is found again in the same block adds to the one that is there", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("sum")
      yield* scanTo(model.head)
      yield* owe(alice, { chain: "ethereum", expiresAt: 10 })
      model.mine([], 1000)
      const { at, ...reading } = yield* readBalances(depsOf(model.client), model.head, [])
      yield* scanTo(at)
      const transfer = {
        blockNumber: at.number,
        blockHash: at.hash,
        blockTime: at.time,
        txHash: undefined,
        position: "unattributed",
        address: alice,
        currency: "ETH",
        amount: 3n
      }
      yield* look(depsOf(model.client), at, [], { ...reading, transfers: [transfer] })
      yield* look(depsOf(model.client), at, [], { ...reading, transfers: [{ ...transfer, amount: 4n }] })
      expect(yield* told(alice)).toEqual([`${at.number} unattributed 7`])
    }).pipe(inStore)
  )
})

describe("who is asked for", () => {
  it.scoped("every payment of the mode at its deadline, once; on another chain it is enough that something came", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("deadline")
      yield* scanTo(model.head)
      yield* owe(alice, { chain: "ethereum", currency: "USDC", expiresAt: 100 })
      yield* owe(bob, { currency: "USDC", expiresAt: 100 })
      model.mine([direct(alice, 2n), inside(bob, 5n, [bob])])
      model.mine([direct(alice, 1n)], 160)
      yield* round(depsOf(model.client), model.head)
      expect(yield* isDue(model)).toBe(false)
      expect(yield* receipts).toEqual([])
      model.mine([], 161)
      expect(yield* isDue(model)).toBe(true)
      yield* round(depsOf(model.client), model.head)
      expect(yield* isDue(model)).toBe(false)
      expect(yield* told(alice)).toEqual(["3 unattributed 3"])
      expect((yield* told(bob)).map((line) => line.replace(/0x\w+/, "?"))).toEqual(["1 call:? 5"])
      model.mine([], 200)
      expect(yield* wanted(model.head)).toEqual([])
      // A reorg takes back what was compared above it, and the payments are due again.
      const writer = yield* Writer
      yield* writer.write(Ledger.orphanAbove(network, { number: 2, hash: "0x", time: 160 }))
      expect(yield* isDue(model)).toBe(true)
      expect((yield* wanted(model.head)).map(({ address, own }) => [address, own])).toEqual([
        [bob, true],
        [alice, false]
      ])
    }).pipe(inStore)
  )

  it.scoped(
    "on another chain what was there before the payment is none of it, where the state of that time is known",
    () =>
      Effect.gen(function* () {
        const model = new BalanceModel("before")
        model.mine([direct(alice, 40n), direct(bob, 50n)])
        yield* scanTo(model.head)
        model.mine([])
        const created = model.head
        yield* scanTo(created)
        const createdAt = created.time * 1000 + 999
        yield* owe(alice, { chain: "ethereum", currency: "USDC", expiresAt: 100, createdAt })
        yield* owe(bob, { chain: "ethereum", currency: "USDC", expiresAt: 200, createdAt })
        yield* owe(carol, { chain: "ethereum", currency: "USDC", expiresAt: 100, createdAt: 0 })
        model.mine([direct(alice, 3n), direct(carol, 4n)])
        yield* scanTo(model.head)
        expect(
          (yield* wanted({ ...model.head, time: 161 })).map(({ address, known }) => [address, known.number])
        ).toEqual([
          [alice, created.number],
          [carol, 0]
        ])
        model.mine([], 161)
        yield* round(depsOf(model.client), model.head)
        expect((yield* told(alice)).map((line) => line.slice(2))).toEqual(["unattributed 3"])
        // Seen, and not asked about again.
        expect((yield* rows).map(({ address }) => address).sort()).toEqual([alice, carol].sort())
        model.states = 0
        model.mine([], 261)
        yield* round(depsOf(model.client), model.head)
        expect((yield* told(bob)).map((line) => line.slice(2))).toEqual(["unattributed 50"])
      }).pipe(inStore)
  )

  it.scoped("ended payments and lost addresses, a page at a time, without moving `checked`", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("ended")
      yield* scanTo(model.head)
      const address = (n: number) => `0x${n.toString(16).padStart(40, "0")}`
      yield* owe(address(1), { endedAt: 1000 })
      for (const n of [2, 3, 4]) yield* owe(address(n), { endedAt: 2000, ...(n === 3 ? { chain: "polygon" } : {}) })
      const writer = yield* Writer
      yield* writer.write(
        Effect.flatMap(Tx, (tx) =>
          tx.run(
            "INSERT INTO gap_addresses (address, mode, wallet, wallet_index, created_at) VALUES (?, 'test', 'w', 1000, 0)",
            [address(5)]
          )
        )
      )
      model.mine([2, 3, 4, 5].map((n) => direct(address(n), BigInt(n))))
      model.mine([])
      yield* scanTo(model.head)
      const reader = yield* Reader
      const deps = depsOf(model.client)
      const pages: Array<ReadonlyArray<string>> = []
      let cursor: Balances.Cursor | undefined
      do {
        const page = yield* Balances.endedPage(reader, network, 1001, cursor, 2)
        pages.push(page.asked.map((one) => one.address))
        yield* look(deps, model.head, page.asked, { of: "page" })
        cursor = page.next
      } while (cursor !== undefined)
      expect(pages).toEqual([[address(2), address(3)], [address(4)]])
      const gap = yield* Balances.gapPage(reader, network, undefined, 10)
      expect(gap.next).toBeUndefined()
      yield* look(deps, model.head, gap.asked, { of: "page" })
      expect((yield* receipts).map((row) => [row.address, row.position, row.amount])).toEqual([
        [address(2), "tx:0", "2"],
        [address(4), "tx:2", "4"],
        [address(3), "unattributed", "3"],
        [address(5), "unattributed", "5"]
      ])
      expect((yield* scan)?.checked).toBeUndefined()
      // Seen once, known from then on.
      const again = yield* Balances.endedPage(reader, network, 0, undefined, 10)
      expect((yield* readBalances(deps, model.head, again.asked)).transfers).toEqual([])
    }).pipe(inStore)
  )

  it.scoped("of an address that was looked at, what it held then is what later balances are compared with", () =>
    Effect.gen(function* () {
      const model = new BalanceModel("rows")
      yield* scanTo(model.head)
      yield* owe(alice)
      model.mine([direct(alice, 9n)])
      model.mine([{ ...nothing, from: alice, to: stranger, value: 1n }])
      yield* round(depsOf(model.client), model.head)
      expect(yield* rows).toEqual([
        { address: alice, number: 0, balance: "0", nonce: 0 },
        { address: alice, number: 1, balance: "9", nonce: 0 },
        { address: alice, number: 2, balance: "6", nonce: 1 }
      ])
      const [asked] = yield* wanted(model.head)
      expect(asked?.known).toEqual({ number: 2, balance: 6n, nonce: 1, assumed: false })
    }).pipe(inStore)
  )
})
