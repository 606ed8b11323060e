import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Layer } from "effect"
import { makeClient, Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { findTagged } from "../../../src/Chains/watcher/finalityTags.ts"
import { examinePolicies } from "../../../src/Doctor/chains.ts"
import { Reader } from "../../../src/Sql.ts"
import { change } from "../../lib/rows.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, health, second, upTo, usdc, watchedPayment, withTokens, withTwo } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { notingSettlement, pass, pay, scanned, until, watch, world } from "../world.ts"
import { onChain, onTwo } from "./onChain.ts"

const settings = { ...withTwo, policies: [{ aboveUsd: "100", require: "finalized" as const }] }
const finalized = Effect.flatMap(Reader, (reader) =>
  reader.get<{ finalized: number | null }>("SELECT finalized_number AS finalized FROM scans")
)
/** The block time is 10 seconds. */
const hours = (count: number) => count * 360

describe("a tag that a policy requires", () => {
  onTwo("and that no provider knows makes the chain not ready until one does", settings, function* (_, other) {
    yield* watch
    const now = yield* until(health, (state) => state?.reason !== undefined)
    expect(now).toMatchObject({ ready: false, head: 10 })
    expect(now?.reason).toMatch(/"finalized".*chains\.ethereum\.test\.policy.*Remedy: .*rpc_urls/)
    other.finalized = 7
    yield* pass("10 minutes")
    expect((yield* until(health, (state) => state?.ready === true))?.reason).toMatch(/^only one provider reports/)
    yield* pass("10 minutes")
    expect(yield* until(health, (state) => state?.reason === undefined)).toMatchObject({ ready: true })
  })

  onTwo("and that was known once may be unavailable for a while", settings, function* (first, other) {
    for (const node of [first, other]) node.finalized = 7
    yield* watchedPayment(alice)
    yield* until(finalized, (row) => row?.finalized === 7)
    for (const node of [first, other]) node.finalized = undefined
    yield* Effect.repeatN(second, 29)
    expect(yield* upTo(10)).not.toHaveProperty("reason")
  })

  onTwo("and that stalls while a payment waits for it is reported by health", settings, function* (first, other) {
    for (const node of [first, other]) node.finalized = 7
    const payment = yield* watchedPayment(alice, { currency: "USDC" })
    first.mine(token(usdc, alice, 5n))
    first.mineMany(hours(1))
    yield* second
    yield* until(scanned, (row) => row?.head_number === first.height)
    yield* pass("20 seconds")
    expect(yield* upTo(first.height)).not.toHaveProperty("reason")
    const detecting = (usdValue: string | null) =>
      change("UPDATE payments SET status = 'detecting', usd_value = ? WHERE id = ?", usdValue, payment.id)
    // Its value is too low for the policy.
    yield* detecting("99")
    yield* pass("20 seconds")
    expect(yield* upTo(first.height)).not.toHaveProperty("reason")
    yield* detecting(null)
    yield* pass("20 seconds")
    const now = yield* until(health, (state) => state?.reason !== undefined)
    expect(now).toMatchObject({ ready: true, reason: expect.stringMatching(/finality stalls: .* block 7 is 1 h/) })
    for (const node of [first, other]) node.finalized = first.height
    yield* pass("20 seconds")
    yield* until(health, (state) => state !== undefined && state.reason === undefined)
  })

  clockTest("makes doctor fail if no provider knows it", function* () {
    const first = new ModelChain(10)
    const other = first.twin()
    const head = { number: 10, hash: "", parentHash: "", time: 0, logsBloom: undefined }
    const look = examinePolicies(settings, [
      { client: first.client, head, headAheadSeconds: 0 },
      { client: other.client, head, headAheadSeconds: 0 }
    ])
    expect(yield* look).toMatchObject([{ status: "fail", name: "ethereum.test policy finalized" }])
    other.finalized = 7
    expect(yield* look).toMatchObject([{ status: "ok", finding: "the newest finalized block is 7" }])
    expect(
      yield* examinePolicies({ ...settings, policies: [] }, [{ client: first.client, head, headAheadSeconds: 0 }])
    ).toEqual([])
  })
})

it.effect.each([
  ["unsupported", true],
  ["refused", true],
  ["missing", true],
  ["garbage", true],
  ["timeout", false],
  ["unreachable", false],
  ["rate_limited", false]
] as const)("a node that fails with %s does not know the tag: %s", ([reason, isUnknown]) => {
  const chain = new ModelChain(10)
  chain.failure = reason
  return Effect.map(Effect.either(findTagged(chain, "finalized")), (found) =>
    expect(found).toEqual(isUnknown ? Either.right(undefined) : Either.left(expect.objectContaining({ reason })))
  )
})

onChain("a block that has not been read is not stored as final", { height: 30 }, function* (chain) {
  chain.finalized = 30
  const ahead = { number: "0x64", hash: `0x${"2".repeat(64)}`, parentHash: `0x${"1".repeat(64)}`, timestamp: "0x3e8" }
  chain.distort = ({ params: [tag] }, answer) => (tag === "finalized" ? ahead : answer)
  yield* pay(alice)
  yield* watch
  yield* upTo(30)
  yield* until(finalized, (row) => row?.finalized === 30)
  yield* pass("1 minute")
  // Nor has it been verified.
  const reader = yield* Reader
  expect(yield* reader.get("SELECT finalized_number, verified_number FROM scans")).toEqual({
    finalized_number: 30,
    verified_number: 18
  })
})

it.scoped("each of the two tags is stored as the node reports it", () => {
  const chain = new ModelChain(10)
  const tags: Readonly<Record<string, string>> = { safe: "0x9", finalized: "0x7" }
  const client = makeClient({
    ...chain.client,
    sendEach: (calls) =>
      chain.client.sendEach(
        calls.map(({ method, params: [tag, ...rest] }) => ({ method, params: [tags[String(tag)] ?? tag, ...rest] }))
      )
  })
  const settings = { ...withTokens, policies: [{ aboveUsd: "100", require: "safe" as const }] }
  return Effect.gen(function* () {
    yield* pay(alice)
    yield* watch
    yield* upTo(10)
    const reader = yield* Reader
    const stored = reader.get<{ safe: number | null }>(
      "SELECT safe_number AS safe, finalized_number AS finalized FROM scans"
    )
    expect(yield* until(stored, (row) => row?.safe !== null)).toEqual({ safe: 9, finalized: 7 })
  }).pipe((test) =>
    Effect.flatMap(temporaryDatabase, (path) =>
      Effect.provide(test, world(path, [settings], Layer.succeed(Rpc, { client: () => client }), notingSettlement))
    )
  )
})
