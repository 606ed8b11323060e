import { expect, it } from "@effect/vitest"
import { Effect, Either, Layer } from "effect"
import { makeClient, Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { Reader } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, upTo, withTokens } from "../around.ts"
import { ModelChain } from "../ModelChain.ts"
import { notingSettlement, pass, pay, until, watch, world } from "../world.ts"

it.scoped("a block that has not been read is not stored as final, whatever the node reports", () => {
  const chain = new ModelChain(30)
  const ahead = {
    number: "0x64",
    hash: `0x${"2".repeat(64)}`,
    parentHash: `0x${"1".repeat(64)}`,
    timestamp: "0x3e8",
    transactions: []
  }
  const client = makeClient({
    ...chain.client,
    sendEach: (calls) =>
      calls.every(({ params }) => params[0] === "finalized")
        ? Effect.succeed(calls.map(() => Either.right(ahead)))
        : chain.client.sendEach(calls)
  })
  return Effect.gen(function* () {
    yield* pay(alice)
    yield* watch
    yield* upTo(30)
    const reader = yield* Reader
    const final = reader.get<{ number: number | null }>("SELECT finalized_number AS number FROM scans")
    expect((yield* until(final, (row) => row?.number !== null))?.number).toBe(30)
    yield* pass("1 minute")
    // Nor has it been verified.
    expect(yield* reader.get("SELECT verified_number AS number FROM scans")).toEqual({ number: 18 })
  }).pipe((test) =>
    Effect.flatMap(temporaryDatabase, (path) =>
      Effect.provide(test, world(path, [withTokens], Layer.succeed(Rpc, { client: () => client }), notingSettlement))
    )
  )
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
