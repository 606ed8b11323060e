import { Array as Arr, Clock, Duration, Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { balanceAt, balancesByMulticall, balancesByOverride } from "./balanceMethods.ts"
import { sendBatch } from "./methods.ts"
import type { RpcClient } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

/** What not every provider offers: state overrides of `eth_call`, Multicall3, traces and simulations. */
export type Capability = "override" | "multicall" | "trace" | "simulate"

/** What a provider has shown; nothing of what has not been tried. */
export type Capabilities = Readonly<Partial<Record<Capability, boolean>>>

interface Learnt {
  readonly able: boolean
  /** Unix milliseconds. */
  readonly at: number
}

/** What was refused is tried again after this: plans and nodes change. */
const forget = Duration.toMillis("1 hour")

// Beside the client, and gone with it.
const learnt = new WeakMap<RpcClient, Map<Capability, Learnt>>()

/** What a provider has been seen to offer and to refuse. */
export const capabilitiesOf = (client: RpcClient): Capabilities =>
  Object.fromEntries(Array.from(learnt.get(client) ?? [], ([ability, { able }]) => [ability, able]))

/** Whether it is worth a call. */
export const mayBeCapable = (client: RpcClient, ability: Capability) =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const known = learnt.get(client)?.get(ability)
    return known === undefined || known.able || Math.abs(now - known.at) >= forget
  })

export const noteCapability = (client: RpcClient, ability: Capability, able: boolean) =>
  Effect.map(Clock.currentTimeMillis, (at) => {
    const abilities = learnt.get(client) ?? new Map<Capability, Learnt>()
    learnt.set(client, abilities.set(ability, { able, at }))
  })

const noAnswer: ReadonlySet<RpcReason> = new Set(["unreachable", "timeout", "rate_limited", "behind"])
/** The provider has answered, and will not do it: another call may do. */
export const isCapabilityRefused = ({ reason }: RpcError): boolean => !noAnswer.has(reason)

const chunksAtOnce = 2

const inChunks = (
  client: RpcClient,
  addresses: ReadonlyArray<string>,
  size: number,
  call: (part: ReadonlyArray<string>) => ReturnType<typeof balancesByOverride>
) =>
  Effect.forEach(
    Arr.chunksOf(addresses, size),
    (part) => Effect.map(sendBatch(client, [call(part)]), ([found]) => found),
    {
      concurrency: chunksAtOnce
    }
  )

const oneByOne = (client: RpcClient, addresses: ReadonlyArray<string>, at: BlockRef) =>
  Effect.forEach(
    Arr.chunksOf(addresses, 100),
    (part) =>
      sendBatch(
        client,
        part.map((address) => balanceAt(address, at))
      ),
    { concurrency: chunksAtOnce }
  )

/**
 * Wei of each of the addresses after the block, in their order: in one call a thousand where the provider takes state
 * overrides, in one call five hundred where Multicall3 is, else in one call each. It learns which.
 */
export const readPackedBalances = Effect.fn("Oracle.readPacked")(function* (
  client: RpcClient,
  addresses: ReadonlyArray<string>,
  at: BlockRef
) {
  if (addresses.length === 0) return []
  const refused: Array<Capability> = []
  const shown = (able: ReadonlyArray<Capability>) =>
    Effect.zipRight(
      Effect.forEach(refused, (ability) => noteCapability(client, ability, false), { concurrency: 1, discard: true }),
      Effect.forEach(able, (ability) => noteCapability(client, ability, true), { concurrency: 1, discard: true })
    )
  const ways = [
    ["override", inChunks(client, addresses, 1000, (part) => balancesByOverride(part, at))],
    ["multicall", inChunks(client, addresses, 500, (part) => balancesByMulticall(part, at))]
  ] as const
  for (const [ability, read] of ways) {
    if (!(yield* mayBeCapable(client, ability))) continue
    const found = yield* Effect.either(read)
    if (Either.isRight(found)) {
      yield* shown([ability])
      return found.right.flat()
    }
    if (!isCapabilityRefused(found.left)) return yield* found.left
    refused.push(ability)
  }
  // Only now is it known that it was the way that was refused, and not the provider that refuses everything.
  return yield* Effect.tap(oneByOne(client, addresses, at), () => shown([])).pipe(Effect.map((found) => found.flat()))
})
