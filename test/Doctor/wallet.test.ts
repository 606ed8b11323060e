import { expect } from "@effect/vitest"
import { Effect, Either } from "effect"
import { makeClient, type RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { examineWallet } from "../../src/Doctor/chains.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { testChain, testSettings } from "../lib/settings.ts"

const answer = ({ method }: RpcRequest) => (method === "eth_call" ? "0x" : "0x1")
const client = makeClient({
  host: "liar",
  sendEach: (calls) => Effect.succeed(calls.map((call) => Either.right(answer(call)))),
  counters: { calls: 0, batches: 0, sent: 0, received: 0 }
})
const head = {
  number: 1,
  hash: `0x${"0".repeat(64)}`,
  parentHash: `0x${"0".repeat(64)}`,
  time: 1,
  logsBloom: undefined
}

clockTest("looks no further than ten look-aheads, whatever the provider claims", function* () {
  const settings = testSettings("")
  const small = { ...settings, payments: { ...settings.payments, lookAhead: 20 } }
  const [finding] = yield* examineWallet(small, "test", () => 5, [[testChain(), { client, head, headAheadSeconds: 0 }]])
  expect(finding?.finding).toContain("200 of the indexes from 5 to 204 have a history")
})
