/**
 * The state of one provider in its network: checks passed, failures, cooldown, contradiction, and silence when asked
 * for evidence. `Providers` chooses by it which provider serves; nothing else changes it.
 */
import { Clock, Duration, Effect, Random } from "effect"
import type { RpcClient } from "../rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../rpc/RpcError.ts"
import type { BlockRange } from "./BlockRange.ts"
import type { WrongChain } from "./chainIdentity.ts"
import { ObservedDuration } from "./ObservedDuration.ts"

/** The cooldown after the first failure, in milliseconds. It doubles with each further one, up to the longest. */
const firstBackOff = 250
const longestBackOff = 10_000
/** The longest Retry-After that is honoured, in milliseconds. */
const longestRetryAfter = Duration.toMillis("5 minutes")
/** The cooldown of a provider that serves another chain. */
const wrongChainInterval = Duration.toMillis("10 seconds")
/** The cooldown of a lagging provider. */
const laggingInterval = Duration.toMillis("5 seconds")
/** How long a provider does not serve after others have denied what it reported. */
const contradictedFor = Duration.toMillis("1 hour")

/** Reasons with which a provider that follows the chain answers about blocks that it has not, as those of a false branch. */
const answers: ReadonlySet<RpcReason> = new Set(["missing", "inconsistent", "state", "range", "too_large"])

const isAnswer = (error: RpcError | WrongChain): boolean => error._tag === "RpcError" && answers.has(error.reason)

/** Reasons that are no answer at all. */
const noAnswer: ReadonlySet<RpcReason> = new Set(["unreachable", "timeout", "http", "rate_limited"])

/** One of a chain's providers. */
export interface Provider {
  readonly client: RpcClient
  /** How many blocks to read from it at once. */
  readonly blockRange: BlockRange
  /** Its index in `rpc_urls`. */
  readonly index: number
}

/** The health of a provider, as /readyz shows it. */
export interface ProviderHealth {
  readonly host: string
  /** It is not in cooldown or contradicted and, if it is the one that serves, its last response was good. */
  readonly healthy: boolean
  /** Why it is unhealthy. */
  readonly reason?: string
}

/**
 * Why and until when a provider is not used. Before `since` the clock was set back, and the cooldown does not count.
 */
interface Cooldown {
  readonly error: RpcError | WrongChain
  readonly since: number
  readonly until: number
}

/** A provider and its state. Times are Unix milliseconds. */
export interface ProviderSlot {
  readonly provider: Provider
  /** The chain id was checked since the last failure. */
  checked: boolean
  /** The first block was checked, or the node does not have it; false while the first block is unknown. */
  sameGenesis: boolean
  /** Failures since the last success. */
  failures: number
  /** The smallest block range that a size error has led to since the last success. */
  shrunkTo: number
  /** The last failure, until the next success. */
  cooldown: Cooldown | undefined
  /** What it reported and others denied; kept whatever it responds meanwhile. */
  contradicted: Cooldown | undefined
  /** When it last gave evidence, or was made. */
  testifiedAt: number
  /** For how long it was asked and did not respond. Time in which it was not asked does not count. */
  readonly silence: ObservedDuration
}

/** Ends a provider's silence: it responded, or no provider could be reached. */
export const endSilence = (slot: ProviderSlot, now: number): void => {
  slot.testifiedAt = now
  slot.silence.end()
}

const isActive = (cooldown: Cooldown | undefined, now: number): cooldown is Cooldown =>
  cooldown !== undefined && now >= cooldown.since && now < cooldown.until

/** Whether a provider is in cooldown after a failure. */
export const isCoolingDown = ({ cooldown }: ProviderSlot, now: number): boolean => isActive(cooldown, now)

/** Whether it did not answer at all when it was last asked, a moment ago. */
export const isSilent = ({ cooldown }: ProviderSlot, now: number): boolean =>
  isActive(cooldown, now) && cooldown.error._tag === "RpcError" && noAnswer.has(cooldown.error.reason)

/** Whether it is in cooldown for anything but an answer about blocks. */
export const isUnanswering = (slot: ProviderSlot, now: number): boolean =>
  isCoolingDown(slot, now) && !isLagging(slot) && !(slot.cooldown !== undefined && isAnswer(slot.cooldown.error))

/** Whether others have denied what it reported, within the last hour. */
export const isContradicted = ({ contradicted }: ProviderSlot, now: number): boolean => isActive(contradicted, now)

/** Whether its last failure was a lagging head: it can still be used where there is no other. */
export const isLagging = ({ cooldown }: ProviderSlot): boolean =>
  cooldown?.error._tag === "RpcError" && cooldown.error.reason === "behind"

/** The length of a cooldown, in milliseconds. */
const backOff = Effect.fnUntraced(function* (error: RpcError | WrongChain, failures: number) {
  if (error._tag === "WrongChain") return wrongChainInterval
  if (error.reason === "behind") return laggingInterval
  const jitter = yield* Random.nextRange(0.8, 1.2)
  const wait = Math.min(longestBackOff, Math.ceil(firstBackOff * 2 ** (failures - 1) * jitter))
  return Math.max(wait, Math.min(error.retryAfter ?? 0, longestRetryAfter))
})

/** The state of a provider that has not been used yet. */
export const makeProviderSlot = (
  client: RpcClient,
  blockRange: BlockRange,
  index: number,
  now: number
): ProviderSlot => ({
  provider: { client, blockRange, index },
  checked: false,
  sameGenesis: false,
  failures: 0,
  shrunkTo: Number.POSITIVE_INFINITY,
  cooldown: undefined,
  contradicted: undefined,
  testifiedAt: now,
  silence: new ObservedDuration()
})

/** The health of a provider at `now`. `serves`: it is the one that serves. */
export const providerHealthOf = (slot: ProviderSlot, serves: boolean, now: number): ProviderHealth => {
  const { host } = slot.provider.client
  const failure = serves || isCoolingDown(slot, now) ? slot.cooldown?.error : undefined
  const error = isContradicted(slot, now) ? slot.contradicted?.error : failure
  if (error === undefined) return { host, healthy: true }
  return { host, healthy: false, reason: error._tag === "RpcError" ? error.summary : error.message }
}

/** Notes a failure, and starts a cooldown. */
export const coolDown = Effect.fnUntraced(function* (slot: ProviderSlot, error: RpcError | WrongChain) {
  if (error._tag === "WrongChain" || error.reason !== "behind") {
    slot.checked = false
    slot.failures++
  }
  const since = yield* Clock.currentTimeMillis
  if (!isAnswer(error)) slot.silence.seen(since)
  slot.cooldown = { error, since, until: since + (yield* backOff(error, slot.failures)) }
  yield* Effect.logDebug("a provider is in cooldown").pipe(
    Effect.annotateLogs({ host: slot.provider.client.host, reason: error.message })
  )
})

/** Notes that others deny what it has reported: it does not serve for an hour, whatever it responds. */
export const contradict = Effect.fnUntraced(function* (slot: ProviderSlot, detail: string) {
  const { host } = slot.provider.client
  const since = yield* Clock.currentTimeMillis
  if (!isContradicted(slot, since)) {
    yield* Effect.logError("others deny what a provider has reported: it does not serve for an hour").pipe(
      Effect.annotateLogs({ host, reason: detail })
    )
  }
  const error = new RpcError({ host, method: "eth_getLogs", reason: "contradicted", detail })
  slot.contradicted = { error, since, until: since + contradictedFor }
})

/** When it may serve: `now`, or at the end of its cooldown. */
export const mayServeAt = (slot: ProviderSlot, now: number): number => {
  const until = isCoolingDown(slot, now) && !isLagging(slot) ? (slot.cooldown?.until ?? now) : now
  return isContradicted(slot, now) ? Math.max(until, slot.contradicted?.until ?? now) : until
}

/** Why it may not serve. A contradiction comes first, since it lasts longest. */
export const reasonNotServing = (slot: ProviderSlot, now: number): Cooldown | undefined =>
  isContradicted(slot, now) ? slot.contradicted : slot.cooldown
