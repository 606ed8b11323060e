import { Clock, Duration, Effect, Random } from "effect"
import type { RpcClient } from "../rpc/Rpc.ts"
import { RpcError } from "../rpc/RpcError.ts"
import type { BlockRange } from "./BlockRange.ts"
import type { WrongChain } from "./chainIdentity.ts"
import { ObservedDuration } from "./ObservedDuration.ts"

// What is known of each provider of a chain: what the choice among them goes by.

/** How long a provider is left alone after its first failure; it doubles with each that follows, up to the longest. */
const firstBackOff = 250
const longestBackOff = 10_000
/** The longest that a provider may ask to be left alone for. */
const longestRetryAfter = Duration.toMillis("5 minutes")
/** After which a provider of another chain is looked at again. */
const wrongChainInterval = Duration.toMillis("10 seconds")
/** After which a provider that is behind is looked at again. */
const behindInterval = Duration.toMillis("5 seconds")
/** For how long a provider does not serve after others have denied what it reported. */
const contradictedFor = Duration.toMillis("1 hour")

/** One of a chain's providers. */
export interface Provider {
  readonly client: RpcClient
  /** How many blocks it lets be read at once. */
  readonly blockRange: BlockRange
  /** Its place in `rpc_urls`. */
  readonly index: number
}

export interface ProviderHealth {
  readonly host: string
  /** It is not put aside, and if it is the one that serves, its last answer was good. */
  readonly healthy: boolean
  /** Why it is not. */
  readonly reason?: string
}

/** Why and for how long a provider is left alone. A clock that is before `since` was set back: it counts for nothing. */
interface Cooldown {
  readonly error: RpcError | WrongChain
  readonly since: number
  readonly until: number
}

/** A provider and what is known of it. */
export interface ProviderSlot {
  readonly provider: Provider
  /** The chain id was the right one since the last failure. */
  checked: boolean
  /** The first block was the right one, or is not kept; false while none is known. */
  sameGenesis: boolean
  /** Failures since it last went well. */
  failures: number
  /** The smallest span that a size error has led to since it last went well. */
  shrunkTo: number
  /** The last failure, until it goes well again. */
  cooldown: Cooldown | undefined
  /** What others have denied that it reported; kept however well it answers meanwhile. */
  contradicted: Cooldown | undefined
  /** When it last testified, or was made. */
  testifiedAt: number
  /** It has been asked in vain since: not to have been asked is no silence. */
  readonly silence: ObservedDuration
}

/** It has said something, or nobody could hear it. */
export const endSilence = (slot: ProviderSlot, now: number): void => {
  slot.testifiedAt = now
  slot.silence.end()
}

const holds = (aside: Cooldown | undefined, now: number): aside is Cooldown =>
  aside !== undefined && now >= aside.since && now < aside.until

export const isCoolingDown = ({ cooldown: aside }: ProviderSlot, now: number): boolean => holds(aside, now)

/** What it reports is not believed for now. */
export const isContradicted = ({ contradicted }: ProviderSlot, now: number): boolean => holds(contradicted, now)

export const isLagging = ({ cooldown: aside }: ProviderSlot): boolean =>
  aside?.error._tag === "RpcError" && aside.error.reason === "behind"

/** How long to leave a provider alone, in milliseconds. */
const backOff = Effect.fnUntraced(function* (error: RpcError | WrongChain, failures: number) {
  if (error._tag === "WrongChain") return wrongChainInterval
  if (error.reason === "behind") return behindInterval
  const jitter = yield* Random.nextRange(0.8, 1.2)
  const wait = Math.min(longestBackOff, Math.ceil(firstBackOff * 2 ** (failures - 1) * jitter))
  return Math.max(wait, Math.min(error.retryAfter ?? 0, longestRetryAfter))
})

export const makeProviderSlot = (client: RpcClient, span: BlockRange, index: number, now: number): ProviderSlot => ({
  provider: { client, blockRange: span, index },
  checked: false,
  sameGenesis: false,
  failures: 0,
  shrunkTo: Number.POSITIVE_INFINITY,
  cooldown: undefined,
  contradicted: undefined,
  testifiedAt: now,
  silence: new ObservedDuration()
})

export const providerHealthOf = (slot: ProviderSlot, serves: boolean, now: number): ProviderHealth => {
  const { host } = slot.provider.client
  const failure = serves || isCoolingDown(slot, now) ? slot.cooldown?.error : undefined
  const error = isContradicted(slot, now) ? slot.contradicted?.error : failure
  if (error === undefined) return { host, healthy: true }
  return { host, healthy: false, reason: error._tag === "RpcError" ? error.summary : error.message }
}

/** Notes a failure, and leaves the provider alone for a while. */
export const coolDown = Effect.fnUntraced(function* (slot: ProviderSlot, error: RpcError | WrongChain) {
  if (error._tag === "WrongChain" || error.reason !== "behind") {
    slot.checked = false
    slot.failures++
  }
  const since = yield* Clock.currentTimeMillis
  slot.silence.seen(since)
  slot.cooldown = { error, since, until: since + (yield* backOff(error, slot.failures)) }
  yield* Effect.logDebug("a provider is put aside").pipe(
    Effect.annotateLogs({ host: slot.provider.client.host, reason: error.message })
  )
})

/** Others deny what it has reported: it does not serve for a long while, however well it answers. */
export const contradict = Effect.fnUntraced(function* (slot: ProviderSlot, detail: string) {
  const { host } = slot.provider.client
  const since = yield* Clock.currentTimeMillis
  if (!isContradicted(slot, since)) {
    yield* Effect.logError("a provider reports money that others deny: it serves no more for an hour").pipe(
      Effect.annotateLogs({ host, reason: detail })
    )
  }
  const error = new RpcError({ host, method: "eth_getLogs", reason: "contradicted", detail })
  slot.contradicted = { error, since, until: since + contradictedFor }
})

/** When it may serve: `now`, or later. Unix milliseconds. */
export const mayServeAt = (slot: ProviderSlot, now: number): number => {
  const until = isCoolingDown(slot, now) && !isLagging(slot) ? (slot.cooldown?.until ?? now) : now
  return isContradicted(slot, now) ? Math.max(until, slot.contradicted?.until ?? now) : until
}

/** Why it may not serve, of what holds the longest. */
export const reasonNotServing = (slot: ProviderSlot, now: number): Cooldown | undefined =>
  isContradicted(slot, now) ? slot.contradicted : slot.cooldown
