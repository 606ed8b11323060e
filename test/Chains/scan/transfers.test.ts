import { Either } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import {
  contractsOf,
  nativeTransfers,
  strayBlock,
  tokenTransfers,
  transfersAmong
} from "../../../src/Chains/scan/transfers.ts"
import { chainSettings } from "../world.ts"

const bytes = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((b) => `0x${Buffer.from(b).toString("hex")}`)
const address = (n: number): string => `0x${n.toString(16).padStart(40, "a")}`
const hash = (n: number): string => `0x${n.toString(16).padStart(64, "b")}`
const topic = (of: string): string => `0x${"0".repeat(24)}${of.slice(2)}`
const word = (value: bigint): string => `0x${value.toString(16).padStart(64, "0")}`
const hex = (value: number): string => `0x${value.toString(16)}`

const [usdc, bridged, lookAlike] = [address(0xc1), address(0xc2), address(0xc3)]
const [mine, another] = [address(1), address(2)]

const chain = chainSettings({
  chain: "polygon",
  tokens: [{ symbol: "USDC", address: usdc, decimals: 6 }],
  wrongTokens: [{ name: "USDC.e", address: bridged }]
})
const contracts = contractsOf(chain, [])
const watched = new AddressSet()
watched.add(mine)

const log = (over: Record<string, unknown> = {}) => ({
  address: usdc,
  topics: [transferTopic, topic(another), topic(mine)],
  data: word(5n),
  blockNumber: "0x10",
  blockHash: hash(16),
  transactionHash: hash(99),
  transactionIndex: "0x1",
  logIndex: "0x7",
  removed: false,
  ...over
})

const found = (...logs: ReadonlyArray<unknown>) => Either.getOrThrow(tokenTransfers(logs, contracts, watched))

describe("token transfers", () => {
  it("reads a transfer to a watched address", () => {
    expect(found(log())).toEqual([
      {
        blockNumber: 16,
        blockHash: hash(16),
        txHash: hash(99),
        position: `log:${hash(99)}:${usdc}:5:0`,
        place: 7,
        address: mine,
        sender: another,
        contract: usdc,
        currency: "USDC",
        amount: 5n
      }
    ])
  })

  it("identifies a log by its content, whatever index a node gives it, and counts equal ones", () => {
    const positions = (first: number) =>
      found(log({ logIndex: hex(first) }), log({ logIndex: hex(first + 1) })).map(({ position }) => position)
    expect(positions(7)).toEqual([`log:${hash(99)}:${usdc}:5:0`, `log:${hash(99)}:${usdc}:5:1`])
    expect(positions(0)).toEqual(positions(7))
  })

  it("counts equal logs of one transaction by receiver, so that no position depends on who else is watched", () => {
    const both = new AddressSet()
    for (const one of [mine, another]) both.add(one)
    const logs = [another, mine].map((to, i) =>
      log({ topics: [transferTopic, topic(lookAlike), topic(to)], logIndex: hex(i) })
    )
    const positions = Either.getOrThrow(tokenTransfers(logs, contracts, both)).map(({ position }) => position)
    expect(positions).toEqual([`log:${hash(99)}:${usdc}:5:0`, `log:${hash(99)}:${usdc}:5:0`])
  })

  it("keeps two logs that a node numbers per transaction, and merges one that comes twice", () => {
    const txHashes = [hash(98), hash(99)]
    const logs = txHashes.map((transactionHash) => log({ transactionHash, logIndex: "0x0" }))
    expect(found(...logs, ...logs).map(({ txHash }) => txHash)).toEqual(txHashes)
  })

  it("names a known wrong token as such", () => {
    expect(found(log({ address: bridged }))[0]?.currency).toBe("USDC.e")
  })

  it("records a contract that was configured once under its address, unless it has a name or is configured again", () => {
    const now = contractsOf(chain, [lookAlike, bridged, usdc])
    expect(now.get(lookAlike)).toBe(lookAlike)
    expect(now.get(bridged)).toBe("USDC.e")
    expect(now.get(usdc)).toBe("USDC")
  })

  it("never counts a wrong token as the right one, whatever the configuration calls it", () => {
    const wrongTokens = [
      { name: "USDC", address: bridged },
      { name: "MATIC", address: lookAlike }
    ]
    const named = contractsOf({ ...chain, wrongTokens }, [])
    expect(named.get(usdc)).toBe("USDC")
    expect(named.get(bridged)).toBe(bridged)
    expect(named.get(lookAlike)).toBe(lookAlike)
    expect(contractsOf({ ...chain, wrongTokens: [{ name: "USDC.e", address: usdc }] }, []).get(usdc)).toBe("USDC")
  })

  it.each([
    ["another contract's", log({ address: lookAlike })],
    ["one to another address", log({ topics: [transferTopic, topic(mine), topic(another)] })],
    ["one from the address to itself", log({ topics: [transferTopic, topic(mine), topic(mine)] })],
    ["one of nothing", log({ data: word(0n) })],
    ["one without an amount", log({ data: "0x" })],
    ["one with more data", log({ data: `${word(5n)}00` })],
    ["a non-fungible one", log({ topics: [transferTopic, topic(another), topic(mine), word(1n)] })],
    ["one without indexed addresses", log({ topics: [transferTopic] })],
    ["a removed one", log({ removed: true })],
    [
      "one to a longer number that ends like the address",
      log({ topics: [transferTopic, topic(another), `0x${"1".repeat(24)}${mine.slice(2)}`] })
    ]
  ])("passes over %s", (_, other) => {
    expect(found(other)).toEqual([])
  })

  it.each([
    ["no object", 1],
    ["no topics", log({ topics: undefined })],
    ["a short topic", log({ topics: [transferTopic, topic(another), "0x12"] })],
    ["another event", log({ topics: [hash(1), topic(another), topic(mine)] })],
    ["an amount that is no number", log({ data: "0xzz" })],
    ["a block number that is none", log({ blockNumber: "16" })],
    ["a block number that no number holds", log({ blockNumber: "0xffffffffffffffff" })],
    ["no block", log({ blockHash: null })],
    ["no transaction", log({ transactionHash: "0x12" })],
    ["no index", log({ logIndex: undefined })]
  ])("refuses an answer with %s", (_, garbage) => {
    expect(Either.isLeft(tokenTransfers([log(), garbage], contracts, watched))).toBe(true)
  })

  it("finds all and only the watched receivers, with their amounts", () => {
    const transfer = fc.record({
      to: fc.oneof(fc.constantFrom(mine, another), bytes(20)),
      amount: fc.bigInt({ min: 1n, max: 2n ** 256n - 1n }),
      contract: fc.constantFrom(usdc, bridged, lookAlike)
    })
    void fc.assert(
      fc.property(fc.array(transfer), (transfers) => {
        const logs = transfers.map(({ amount, contract, to }, i) =>
          log({
            topics: [transferTopic, topic(another), topic(to)],
            data: word(amount),
            address: contract,
            logIndex: hex(i)
          })
        )
        const expected = transfers.flatMap(({ amount, contract, to }, i) =>
          to === mine && contract !== lookAlike ? [[i, amount, contract === usdc ? "USDC" : "USDC.e"]] : []
        )
        expect(found(...logs).map((one) => [one.place, one.amount, one.currency])).toEqual(expected)
      })
    )
  })
})

describe("token transfers of a transaction", () => {
  const among = (...logs: ReadonlyArray<unknown>) => transfersAmong(logs, contracts, watched)

  it("are separated from its other events, which may name a watched address too", () => {
    const approval = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
    const ofRouter = { address: lookAlike, topics: [hash(1), topic(another), topic(mine)], data: "0x" }
    const anonymous = log({ topics: [] })
    const logs = [log({ topics: [approval, topic(another), topic(mine)] }), log(ofRouter), anonymous, log()]
    expect(among(...logs)).toEqual(Either.right(found(log())))
  })

  it("fail as malformed where they cannot be decoded", () => {
    for (const garbage of [1, log({ topics: undefined }), log({ logIndex: undefined })]) {
      expect(Either.isLeft(among(log(), garbage))).toBe(true)
    }
  })
})

describe("stray logs", () => {
  const blocks = new Set([hash(1), hash(2)])
  it("accepts logs of the range, in any order and case", () => {
    const logs = [
      log({ blockHash: hash(2) }),
      log({ blockHash: hash(1) }),
      log({ blockHash: hash(1).toUpperCase().replace("X", "x") })
    ]
    expect(strayBlock(logs, blocks)).toBeUndefined()
    expect(strayBlock([], blocks)).toBeUndefined()
  })

  it.each([[log({ blockHash: hash(3) })], [log({ blockHash: undefined })], [7]])("names another block: %o", (stray) => {
    expect(strayBlock([log({ blockHash: hash(1) }), stray], blocks)).toBeDefined()
    expect(strayBlock([stray], blocks)).toBeDefined()
  })
})

describe("native transfers", () => {
  const header = { number: 16, hash: hash(16), parentHash: hash(15), time: 1, logsBloom: undefined }
  const transaction = (over: Record<string, unknown> = {}) => ({
    to: mine,
    value: "0x64",
    hash: hash(99),
    blockHash: hash(16),
    blockNumber: "0x10",
    transactionIndex: "0x3",
    from: another,
    input: "0x",
    ...over
  })
  const among = (...transactions: ReadonlyArray<unknown>) => nativeTransfers({ header, transactions }, "MATIC", watched)

  it("reads a transaction that sends value to a watched address", () => {
    expect(Either.getOrThrow(among(transaction()))).toEqual([
      {
        blockNumber: 16,
        blockHash: hash(16),
        txHash: hash(99),
        position: "tx:3",
        place: 3,
        address: mine,
        sender: another,
        currency: "MATIC",
        amount: 100n
      }
    ])
  })

  it.each([
    ["one without value", transaction({ value: "0x0" })],
    ["what an address sends to itself", transaction({ from: mine })],
    ["one to another address", transaction({ to: another })],
    ["the creation of a contract", transaction({ to: null })],
    ["one without a receiver", transaction({ to: undefined })]
  ])("passes over %s", (_, other) => {
    expect(Either.getOrThrow(among(other))).toEqual([])
  })

  it.each([
    ["a bare hash", hash(1)],
    ["a receiver that is none", transaction({ to: "0x12" })],
    ["a value that is none", transaction({ value: "100" })],
    ["another block's hash", transaction({ blockHash: hash(17) })],
    ["another block's number", transaction({ blockNumber: "0x11" })],
    ["no hash", transaction({ hash: undefined })]
  ])("refuses a block with %s", (_, garbage) => {
    expect(Either.isLeft(among(transaction(), garbage))).toBe(true)
  })
})
