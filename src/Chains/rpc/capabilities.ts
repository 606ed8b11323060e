/**
 * Which optional methods each provider serves, learnt from its responses and kept with its client in memory, and the
 * reading of many balances by the cheapest way that the provider serves.
 */
import { Array as Arr, Clock, Duration, Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import {
  balanceAt,
  balancesByMulticall,
  balancesByOverride,
  blockParameter,
  tokensByMulticall
} from "./balanceMethods.ts"
import { type Call, getTokenBalance, sendInBatches } from "./methods.ts"
import type { RpcClient } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

/** Optional capabilities: state overrides of `eth_call`, Multicall3, traces and simulations. */
export type Capability = "override" | "multicall" | "trace" | "simulate"

interface Observation {
  readonly able: boolean
  /** Unix milliseconds. */
  readonly at: number
}

/** A refused capability is tried again after this, since plans and nodes change. Milliseconds. */
const retryAfter = Duration.toMillis("1 hour")

// Kept for the lifetime of the client.
const observations = new WeakMap<RpcClient, Map<Capability, Observation>>()

/** Capabilities that a provider has served (true) or refused (false). Untried ones are absent. */
export const capabilitiesOf = (client: RpcClient): Readonly<Partial<Record<Capability, boolean>>> =>
  Object.fromEntries(Array.from(observations.get(client) ?? [], ([ability, { able }]) => [ability, able]))

/** Whether a call is worth trying: the capability was not refused within the last hour. */
export const mayBeCapable = (client: RpcClient, ability: Capability) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const known = observations.get(client)?.get(ability)
    return known === undefined || known.able || Math.abs(now - known.at) >= retryAfter
  })

/** Notes that a provider serves or refuses a capability. */
export const noteCapability = (client: RpcClient, ability: Capability, able: boolean) =>
  Effect.map(Clock.currentTimeMillis, (at) => {
    const abilities = observations.get(client) ?? new Map<Capability, Observation>()
    observations.set(client, abilities.set(ability, { able, at }))
  })

const transient: ReadonlySet<RpcReason> = new Set(["unreachable", "timeout", "rate_limited", "behind"])
/** Whether an error is the provider's refusal of this call: another kind of call may succeed. */
export const isCapabilityRefused = ({ reason }: RpcError): boolean => !transient.has(reason)

const chunksAtOnce = 2
/** Addresses in one call of Multicall3. */
const perMulticall = 500

const inChunks = (
  client: RpcClient,
  addresses: ReadonlyArray<string>,
  size: number,
  call: (part: ReadonlyArray<string>) => Call<ReadonlyArray<bigint>>
) => sendInBatches(client, Arr.chunksOf(addresses, size).map(call), 1, chunksAtOnce)

/**
 * Wei of each of the addresses after the block, in their order: 1,000 in one call with state overrides, 500 in one call
 * of Multicall3, else one in each call. Notes which of them the provider serves.
 */
export const readPackedBalances = Effect.fn("Capabilities.readPackedBalances")(function* (
  client: RpcClient,
  addresses: ReadonlyArray<string>,
  at: BlockRef
) {
  if (addresses.length === 0) return []
  const refused: Array<Capability> = []
  const noteAll = (able: ReadonlyArray<Capability>) =>
    Effect.forEach(
      [...refused.map((ability) => [ability, false] as const), ...able.map((ability) => [ability, true] as const)],
      ([ability, isAble]) => noteCapability(client, ability, isAble),
      { concurrency: 1, discard: true }
    )
  const methods = [
    ["override", inChunks(client, addresses, 1000, (part) => balancesByOverride(part, at))],
    ["multicall", inChunks(client, addresses, perMulticall, (part) => balancesByMulticall(part, at))]
  ] as const
  for (const [ability, read] of methods) {
    if (!(yield* mayBeCapable(client, ability))) continue
    const found = yield* Effect.either(read)
    if (Either.isRight(found)) {
      yield* noteAll([ability])
      return found.right.flat()
    }
    if (!isCapabilityRefused(found.left)) return yield* found.left
    refused.push(ability)
  }
  const calls = addresses.map((address) => balanceAt(address, at))
  // Only a success of the plain calls shows that the methods were refused, and not every call.
  return yield* Effect.tap(sendInBatches(client, calls, 100, chunksAtOnce), () => noteAll([]))
})

/** Base units of a token after a block, the head unless it is given, of each address in their order: by Multicall3, else one in each call. */
export const readTokenBalances = Effect.fn("Capabilities.readTokenBalances")(function* (
  client: RpcClient,
  contract: string,
  addresses: ReadonlyArray<string>,
  at?: BlockRef
) {
  const block = at && blockParameter(at)
  if (yield* mayBeCapable(client, "multicall")) {
    const packed = yield* Effect.either(
      inChunks(client, addresses, perMulticall, (part) => tokensByMulticall(contract, part, block))
    )
    if (Either.isRight(packed)) return packed.right.flat()
    if (!isCapabilityRefused(packed.left)) return yield* packed.left
  }
  const calls = addresses.map((address) => getTokenBalance(contract, address, block))
  return yield* sendInBatches(client, calls)
})
