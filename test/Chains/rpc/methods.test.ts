import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { numberToHex, toEventSelector } from "viem"
import {
  findHeader,
  getChainId,
  getGasPrice,
  getHead,
  getHeader,
  getTokenBalance,
  sendBatch,
  transferTopic
} from "../../../src/Chains/rpc/methods.ts"
import { transferIn } from "../../../src/Chains/rpc/tokenTransfer.ts"
import { getTransactionReceipt, hasSucceeded } from "../../../src/Chains/rpc/transactionMethods.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { nodeClient } from "../../sim/nodeClient.ts"

describe("sendBatch", () => {
  const saying = (...said: ReadonlyArray<unknown>) => nodeClient("model", () => Effect.succeed(said.map(Either.right)))
  const header = { number: "0x10", hash: `0x${"A".repeat(64)}`, parentHash: `0x${"b".repeat(64)}`, timestamp: "0x64" }

  clockTest("decodes each result, and does not send calls that are undefined", function* () {
    const noBloom = { ...header, logsBloom: null }
    const calls = [getChainId, undefined, getHead, getHead] as const
    const [id, none, head, same] = yield* sendBatch(saying("0x4d", header, noBloom), calls)
    expect(id).toBe(77)
    expect(none).toBeUndefined()
    expect(head).toEqual({ number: 16, hash: `0x${"a".repeat(64)}`, parentHash: header.parentHash, time: 100 })
    expect(same).toEqual(head)
  })

  it.effect.each([["77"], ["0x"], ["0x1g"], ["0x20000000000000"], [77], [{}], [["0x1"]], [true]])(
    "refuses %o as a chain id",
    ([answer]) =>
      Effect.map(Effect.flip(sendBatch(saying(answer), [getChainId])), ({ reason }) => expect(reason).toBe("garbage"))
  )

  it.effect.each([
    [{ ...header, number: "latest" }],
    [{ ...header, hash: "0x12" }],
    [{ ...header, parentHash: undefined }],
    [{ ...header, timestamp: -1 }],
    ["0x10"]
  ])("refuses %o as a header", ([answer]) =>
    Effect.map(Effect.flip(sendBatch(saying(answer), [getHead])), (error) => {
      expect(error.reason).toBe("garbage")
      expect(error.method).toBe('eth_getBlockByNumber("latest", false)')
    })
  )

  clockTest(
    "refuses another block than the requested one, and accepts null where the block may be missing",
    function* () {
      expect(
        yield* sendBatch(saying(header, header, null), [getHeader(16), findHeader(16), findHeader(16)])
      ).toMatchObject([{ number: 16 }, { number: 16 }, undefined])
      for (const number of [15, 17]) {
        for (const call of [getHeader(number), findHeader(number)]) {
          const { detail } = yield* Effect.flip(sendBatch(saying(header), [call]))
          expect(detail).toBe(`block 16 came where ${number} was asked for`)
        }
      }
    }
  )

  clockTest("reads from a receipt whether the transaction succeeded, and refuses any other status", function* () {
    const receipt = { transactionHash: header.hash, blockHash: header.hash, status: "0x1" }
    const calls = [getTransactionReceipt(header.hash), getTransactionReceipt(header.hash)] as const
    const [good, failed] = yield* sendBatch(saying(receipt, { ...receipt, status: "0x0" }), calls)
    expect([good, failed].map(hasSucceeded)).toEqual([true, false])
    for (const status of ["0x2", "0x", true, undefined]) {
      const error = yield* Effect.flip(sendBatch(saying({ ...receipt, status }), [getTransactionReceipt(header.hash)]))
      expect(error.reason).toBe("garbage")
    }
  })

  it.effect("reports a result of null as missing", () =>
    Effect.map(Effect.flip(sendBatch(saying(null), [getHead])), ({ reason }) => expect(reason).toBe("missing"))
  )

  clockTest("reads amounts that exceed a JavaScript number", function* () {
    const [price] = yield* sendBatch(saying(`0x${"f".repeat(64)}`), [getGasPrice])
    expect(price).toBe(2n ** 256n - 1n)
    const balance = getTokenBalance(`0x${"1".repeat(40)}`, `0x${"2".repeat(40)}`)
    expect(yield* sendBatch(saying(`0x${"f".repeat(64)}`, "0x"), [balance, balance])).toEqual([2n ** 256n - 1n, 0n])
    expect((yield* Effect.flip(sendBatch(saying("0x1"), [balance]))).reason).toBe("garbage")
  })
})

it("only a log of the standard's form for a transfer is one of a token", () => {
  const topic = (digit: string) => `0x${"0".repeat(24)}${digit.repeat(40)}`
  const log = {
    address: `0x${"c".repeat(40)}`,
    topics: [transferTopic, topic("a"), topic("b")],
    data: numberToHex(5n, { size: 32 })
  }
  expect(transferIn(log)).toEqual([
    { contract: log.address, from: `0x${"a".repeat(40)}`, to: `0x${"b".repeat(40)}`, amount: 5n }
  ])
  const approval = toEventSelector("Approval(address,address,uint256)")
  // A collectible has its number as a third topic, and no data.
  const collectible = { ...log, topics: [...log.topics, topic("0")], data: "0x" }
  for (const other of [{ ...log, topics: [approval, topic("a"), topic("b")] }, { ...log, data: "0x5" }, collectible]) {
    expect(transferIn(other)).toEqual([])
  }
})
