import { it } from "@effect/vitest"
import { Effect, type Layer, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import type { SettingsShape } from "../../../src/Settings.ts"
import { rows } from "../../lib/rows.ts"
import { alice, aroundSome, aroundSomeReal, second, usdc, watchedPayment, withReceipts, withTokens } from "../around.ts"
import { ModelChain } from "../ModelChain.ts"
import type { Announced, world } from "../world.ts"

/** The providers of a scene, all of one chain of ten blocks. */
interface Cast {
  readonly nodes: number
  /** Where the first node of the story stands among the providers; the one at 0 serves. */
  readonly place?: number
  /** The first node of the story has a branch of its own above block 10. */
  readonly apart?: boolean
  /** Each has a host of its own, by which a receipt names the provider that reported it. */
  readonly hosts?: boolean
  readonly settings?: Partial<typeof withTokens>
  readonly payments?: Partial<SettingsShape["payments"]>
}

type Staged = Layer.Layer.Success<ReturnType<typeof world<Announced, never, never>>> | Scope.Scope
type Step = YieldWrap<Effect.Effect<unknown, unknown, Staged>>
type Story<Yielded> = (first: ModelChain, other: ModelChain, third: ModelChain) => Generator<Yielded, void, never>

const nodesOf = ({ apart = false, hosts = false, nodes, place = 0 }: Cast) => {
  const first = new ModelChain(10)
  const other = apart ? new ModelChain(-1, [...first.blocks]) : first.twin()
  const third = other.twin()
  if (apart) first.rollback(0)
  const providers = [other, third].slice(0, nodes - 1)
  providers.splice(place, 0, first)
  if (hosts) for (const [i, node] of providers.entries()) node.host = `node-${i}`
  return { first, other, third, providers }
}

/** A test on a chain with providers of which each may have faults of its own, with the real settlement. */
export const scene = (title: string, cast: Cast, story: Story<Step>) => {
  const { first, other, third, providers } = nodesOf(cast)
  const around = aroundSomeReal(providers, { ...withTokens, ...cast.settings }, cast.payments)
  it.scoped(title, () => Effect.gen(() => story(first, other, third)).pipe(around))
}

type Untold = YieldWrap<Effect.Effect<unknown, unknown, Exclude<Staged, Announced>>>

/** The same, where payments stay open whatever they receive. */
export const openScene = (title: string, cast: Cast, story: Story<Untold>) => {
  const { first, other, third, providers } = nodesOf(cast)
  const around = aroundSome(providers, { ...withTokens, ...cast.settings }, cast.payments)
  it.scoped(title, () => Effect.gen(() => story(first, other, third)).pipe(around))
}

/** Lets so many seconds pass, one tick each. */
export const seconds = (count: number) => Effect.repeatN(second, count - 1)

/** Repeats `count` times: mines a block on each chain, and lets a second pass. */
export const mineOn = (chains: ReadonlyArray<ModelChain>, count: number) =>
  Effect.repeatN(
    Effect.suspend(() => {
      for (const chain of chains) chain.mine()
      return second
    }),
    count - 1
  )

/** The nodes serve all calls of balance reconciliation. */
export const servingCoins = (...nodes: ReadonlyArray<ModelChain>) => {
  for (const node of nodes) {
    withReceipts(node)
    const { distort } = node
    node.distort = (request, answer) => (answer === null ? null : distort(request, answer))
  }
}

/** A payment in coins that is watched, in a world in which payments end. */
export const watchedCoins = (amount = 5n, over: Parameters<typeof watchedPayment>[1] = {}) =>
  Effect.gen(function* () {
    yield* Effect.forkScoped((yield* Settlement).expire)
    return yield* watchedPayment(alice, { amount, ...over })
  })

/** The node leaves out all logs. */
export const withholdingLogs = (chain: ModelChain) => {
  chain.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
}

/** The node also gives these logs where it is asked for their blocks. */
export const withLogs = (chain: ModelChain, invented: () => ReadonlyArray<{ readonly blockNumber: string }>) => {
  const { distort } = chain
  chain.distort = (request, answer) => {
    if (request.method !== "eth_getLogs") return distort(request, answer)
    const { fromBlock, toBlock } = request.params[0] as { readonly fromBlock: string; readonly toBlock: string }
    const isAsked = ({ blockNumber }: { readonly blockNumber: string }) =>
      Number(blockNumber) >= Number(fromBlock) && Number(blockNumber) <= Number(toBlock)
    return [...(distort(request, answer) as ReadonlyArray<unknown>), ...invented().filter(isAsked)]
  }
}

/** The log of a transfer to an address that is in no transaction of the block. */
export const logTo = (
  receiver: string,
  block: Pick<BlockRef, "number" | "hash"> | undefined,
  { amount = 5n, transactionHash = `0x${"f".repeat(64)}`, logIndex = "0x7" } = {}
) => ({
  address: usdc,
  topics: [transferTopic, `0x${"0".repeat(64)}`, `0x${receiver.slice(2).toLowerCase().padStart(64, "0")}`],
  data: `0x${amount.toString(16).padStart(64, "0")}`,
  blockNumber: `0x${block?.number.toString(16)}`,
  blockHash: block?.hash,
  transactionHash,
  logIndex,
  removed: false
})

/** The same to alice. */
export const inventedLog = ({ blocks }: ModelChain, block: number, over?: Parameters<typeof logTo>[2]) =>
  logTo(alice, blocks[block], over)

/** Number of the block up to which deep blocks have been read again. */
export const verified = Effect.map(
  rows<{ readonly number: number }>("SELECT verified_number AS number FROM scans"),
  ([scan]) => scan?.number ?? -1
)

/** Whether each receipt is corroborated, by block. */
export const corroborated = Effect.map(
  rows<{ readonly corroborated: number }>("SELECT corroborated FROM receipts ORDER BY block_number, amount"),
  (all) => all.map((row) => row.corroborated)
)
