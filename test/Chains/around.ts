import { Effect, type Layer, Queue, Redacted } from "effect"
import { getAddress, type Hex } from "viem"
import type { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { Chains } from "../../src/Chains.ts"
import type { SettingsShape } from "../../src/Settings.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { type ModelChain, type ModelTransaction, modelRpc, token } from "./ModelChain.ts"
import {
  chainSettings,
  committedTo,
  notingSettlement,
  pass,
  pay,
  realSettlement,
  until,
  watch,
  world
} from "./world.ts"

export const address = (n: number): string => getAddress(`0x${n.toString(16).padStart(40, "0")}` as Hex)
export const alice = address(0xa11ce)

const contract = (n: number): string => `0x${n.toString(16).padStart(40, "c")}`
export const usdc = contract(1)
/** A known wrong token. */
export const bridged = contract(2)
/** Of no known token. */
export const lookAlike = contract(3)

export const withTokens = chainSettings({
  tokens: [{ symbol: "USDC", address: usdc, decimals: 6 }],
  wrongTokens: [{ name: "USDC.e", address: bridged }]
})

/** A world around one model chain, with a database of its own; nothing is watched until `watch`. */
export const around =
  (chain: ModelChain, settings = withTokens) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.flatMap(temporaryDatabase, (path) =>
      Effect.provide(test, world(path, [settings], modelRpc({ "model:ethereum": chain }), notingSettlement))
    )

/** A world of what is stored, with no chain in it. */
export const inWorld = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.flatMap(temporaryDatabase, (path) => Effect.provide(test, world(path, [], modelRpc({}), notingSettlement)))

/** Of a chain with two providers. */
export const withTwo = {
  ...withTokens,
  rpcUrls: ["model:first", "model:second"].map((url) => Redacted.make(url))
}

const aroundProviders =
  <S, E, R>(settlement: Layer.Layer<Settlement | S, E, R>) =>
  (nodes: ReadonlyArray<ModelChain>, settings = withTokens, payments: Partial<SettingsShape["payments"]> = {}) => {
    const chains = Object.fromEntries(nodes.map((node, i) => [`model:${["first", "second"][i] ?? i}`, node]))
    const rpcUrls = Object.keys(chains).map((url) => Redacted.make(url))
    return <A, E2, R2>(test: Effect.Effect<A, E2, R2>) =>
      Effect.flatMap(temporaryDatabase, (path) =>
        Effect.provide(test, world(path, [{ ...settings, rpcUrls }], modelRpc(chains), settlement, payments))
      )
  }

/** A world around a chain that has these providers, each with faults of its own. */
export const aroundSome = aroundProviders(notingSettlement)
/** The same, with the real settlement. */
export const aroundSomeReal = aroundProviders(realSettlement)
export const aroundTwo = (first: ModelChain, other: ModelChain, settings?: typeof withTokens) =>
  aroundSome([first, other], settings)

/** Adds the fields of the fee to receipts that a test invents. */
export const withReceipts = (chain: ModelChain) => {
  chain.distort = ({ method }, answer) =>
    method === "eth_getTransactionReceipt" && answer !== null
      ? { gasUsed: "0x5208", effectiveGasPrice: "0x1", ...(answer as object) }
      : answer
}

/** The health of the first chain. */
export const health = Effect.flatMap(Chains, (chains) => Effect.map(chains.health, ([first]) => first))
/** Waits until the watcher itself says that it has read up to this head, and that there is no more. */
export const upTo = (head: number) => until(health, (now) => now?.head === head && now.lagBlocks === 0)
/** Waits until the chain is not read, and returns the reason. */
export const reason = until(health, (now) => now?.reason !== undefined).pipe(Effect.map((now) => now?.reason))
export const second = pass("1 second")
/** An hour after a chain's head, Unix milliseconds: a payment that is made then does not reach back to its blocks. */
export const hourAfter = ({ blocks }: ModelChain): number => ((blocks.at(-1)?.time ?? 0) + 3_600) * 1000
/** A second later, when the watcher looks again: waits for the commit whose head is `number`, and returns it. */
export const readTo = (number: number) => Effect.zipRight(second, committedTo(number))
/** Mines a block with these, which is read a second later. */
export const next = (chain: ModelChain, ...transactions: ReadonlyArray<ModelTransaction>) =>
  Effect.suspend(() => readTo(chain.mine(...transactions).number))
/** A payment on a chain of ten blocks that is watched, and read to its end. */
export const watchedPayment = (to: string, over: Parameters<typeof pay>[1] = {}) =>
  Effect.zipLeft(pay(to, over), Effect.zipRight(watch, committedTo(10)))
/** Clears the recorded batches of the node. */
export const forget = (chain: ModelChain) => Effect.asVoid(Queue.takeAll(chain.answered))

/**
 * Blocks that are final, up to 19, and have not been read again; the ledger has lost what they paid. Returns what works
 * between two ticks.
 */
export const lostReceipts = (chain: ModelChain) =>
  Effect.gen(function* () {
    yield* watchedPayment(alice)
    chain.mine(token(usdc, alice, 5n))
    chain.mineMany(20)
    yield* readTo(31)
    const writer = yield* Writer
    yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts")))
    const { exclusively } = yield* Chains
    return exclusively({ chain: "ethereum", mode: "test" })
  })
