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
/** The maximum Retry-After that is honoured, in milliseconds. */
const longestRetryAfter = Duration.toMillis("5 minutes")
/** The cooldown of a provider that serves another chain. */
const wrongChainInterval = Duration.toMillis("10 seconds")
/** The cooldown of a lagging provider. */
const laggingInterval = Duration.toMillis("5 seconds")
/** How long after its cooldown a provider that was not asked again, or has not responded yet, is still shown as unhealthy. */
const unproven = Duration.toMillis("30 seconds")
/** How long a provider counts as at its limit after it has refused a call for it: longer than from one look to the next. */
const limitedFor = Duration.toMillis("5 minutes")
/** How long a provider is contradicted after others have denied what it reported. */
const contradictedFor = Duration.toMillis("1 hour")

/** Reasons with which a provider that follows the chain reports blocks that it lacks, as of a false branch. */
const answers: ReadonlySet<RpcReason> = new Set(["missing", "inconsistent", "state", "range", "too_large"])

/** Whether it has answered with that, if only that it lacks a block. */
export const isAnswer = (error: RpcError | WrongChain): boolean =>
  error._tag === "RpcError" && answers.has(error.reason)

/** Reasons that mean no response. */
const noAnswer: ReadonlySet<RpcReason> = new Set(["unreachable", "timeout", "http", "rate_limited"])

/** One of a chain's providers. */
export interface Provider {
  readonly client: RpcClient
  /** How many blocks to read from it at once. */
  readonly blockRange: BlockRange
  /** Its index in `rpc_urls`. */
  readonly index: number
}

/** The error of a provider whose head is lower than it should be. */
export const behind = ({ client: { host } }: Provider, detail: string): RpcError =>
  new RpcError({ host, method: "eth_getBlockByNumber", reason: "behind", detail })

/** The health of a provider, as /readyz shows it. */
export interface ProviderHealth {
  readonly host: string
  /** It is not contradicted, nor in cooldown or just out of it; if it serves, its last response was good. */
  readonly healthy: boolean
  /** Why it is unhealthy. */
  readonly reason?: string
  /** It refuses calls as too many, some or all. */
  readonly limited?: true
}

/** Why and until when a provider is not used. It does not count before `since`: the clock was set back. */
interface Cooldown {
  readonly error: RpcError | WrongChain
  readonly since: number
  readonly until: number
}

const isActive = (cooldown: Cooldown | undefined, now: number, longer = 0): cooldown is Cooldown =>
  cooldown !== undefined && now >= cooldown.since && now < cooldown.until + longer

/** The length of a cooldown, in milliseconds. */
const backOff = Effect.fnUntraced(function* (error: RpcError | WrongChain, failures: number) {
  if (error._tag === "WrongChain") return wrongChainInterval
  if (error.reason === "behind") return laggingInterval
  const jitter = yield* Random.nextRange(0.8, 1.2)
  const wait = Math.min(longestBackOff, Math.ceil(firstBackOff * 2 ** (failures - 1) * jitter))
  return Math.max(wait, Math.min(error.retryAfter ?? 0, longestRetryAfter))
})

/** What went wrong, without the provider's own text. */
export const providerReason = (error: RpcError | WrongChain): string =>
  error._tag === "RpcError" ? error.summary : error.message

/** A provider and its state. Times are Unix milliseconds. */
export class ProviderSlot {
  /** The chain id was checked since the last failure. */
  checked = false
  /** The first block was checked, or the node does not have it; false while the first block is unknown. */
  sameGenesis = false
  /** Failures since the last success. */
  #failures = 0
  /** The smallest block range that a size error has led to since the last success. */
  #shrunkTo = Number.POSITIVE_INFINITY
  /** The last failure, until the next success. */
  #cooldown: Cooldown | undefined
  /** Its reports that others denied; kept regardless of its later responses. */
  #contradicted: Cooldown | undefined
  /** How long it was asked without a response. Time in which it was not asked does not count. */
  readonly #silence = new ObservedDuration()

  /** What the last look has found wrong, while another one serves. */
  found: RpcError | WrongChain | undefined
  /** When it last refused a call as one too many. */
  limitedAt = Number.NEGATIVE_INFINITY
  /** As it was last logged. */
  #wasHealthy = true

  constructor(readonly provider: Provider) {}

  /** Notes that a request succeeded. */
  succeeded(): void {
    this.#failures = 0
    this.#shrunkTo = Number.POSITIVE_INFINITY
    this.#cooldown = undefined
    // A response says nothing of its head or chain.
    if (this.found?._tag === "RpcError" && this.found.reason !== "behind") this.found = undefined
  }

  /** Ends its silence: it responded, or no provider could be reached. */
  endSilence(): void {
    this.#silence.end()
  }

  /** Since when it has not responded, where it has been asked for `patience`, milliseconds; undefined where it has not. */
  givenUpSince(patience: number): number | undefined {
    return this.#silence.millis >= patience ? this.#silence.since : undefined
  }

  /** Whether it is in cooldown after a failure. */
  isCoolingDown(now: number): boolean {
    return isActive(this.#cooldown, now)
  }

  /** Whether it did not respond when it was last asked, a moment ago. */
  isSilent(now: number): boolean {
    const cooldown = this.#cooldown
    return isActive(cooldown, now) && cooldown.error._tag === "RpcError" && noAnswer.has(cooldown.error.reason)
  }

  /** Whether it is in cooldown for anything but an answer about blocks. */
  isUnanswering(now: number): boolean {
    const cooldown = this.#cooldown
    return isActive(cooldown, now) && !this.isLagging && !isAnswer(cooldown.error)
  }

  /** Whether others have denied what it reported, within the last hour. */
  isContradicted(now: number): boolean {
    return isActive(this.#contradicted, now)
  }

  /** Whether its last failure was a lagging head: it can still be used where there is no other. */
  get isLagging(): boolean {
    return this.#cooldown?.error._tag === "RpcError" && this.#cooldown.error.reason === "behind"
  }

  /** Its health at `now`. `serves`: it is the one that serves. */
  health(serves: boolean, now: number): ProviderHealth {
    const { host } = this.provider.client
    // One that never responds is in cooldown and asked in turn: it stays unhealthy, for alerts that wait minutes.
    const failure = serves || isActive(this.#cooldown, now, unproven) ? this.#cooldown?.error : this.found
    const error = this.isContradicted(now) ? this.#contradicted?.error : failure
    const limited = now >= this.limitedAt && now - this.limitedAt < limitedFor ? ({ limited: true } as const) : {}
    return {
      host,
      healthy: error === undefined,
      ...limited,
      ...(error === undefined ? {} : { reason: providerReason(error) })
    }
  }

  /** Logs that it has become unhealthy or healthy, since this was last called. */
  logChange({ healthy, host, reason }: ProviderHealth) {
    if (healthy === this.#wasHealthy) return Effect.void
    this.#wasHealthy = healthy
    return healthy
      ? Effect.logInfo("a provider is healthy again").pipe(Effect.annotateLogs({ host }))
      : Effect.logWarning("a provider is unhealthy").pipe(Effect.annotateLogs({ host, reason }))
  }

  /** Notes that a size error has led to a smaller block range. Whether it had none as small since the last success. */
  hasShrunk(): boolean {
    const { blocks } = this.provider.blockRange
    if (blocks >= this.#shrunkTo) return false
    this.#shrunkTo = blocks
    return true
  }

  /** Notes a failure, and starts a cooldown. */
  coolDown(error: RpcError | WrongChain) {
    return Effect.gen(this, function* () {
      if (error._tag === "WrongChain" || error.reason !== "behind") {
        this.checked = false
        this.#failures++
      }
      const since = yield* Clock.currentTimeMillis
      if (!isAnswer(error)) this.#silence.seen(since)
      this.#cooldown = { error, since, until: since + (yield* backOff(error, this.#failures)) }
      yield* Effect.logDebug("a provider is in cooldown").pipe(
        Effect.annotateLogs({ host: this.provider.client.host, reason: error.message })
      )
    })
  }

  /** Notes that others deny what it has reported: it does not serve for an hour, regardless of its responses. */
  contradict(detail: string) {
    return Effect.gen(this, function* () {
      const { host } = this.provider.client
      const since = yield* Clock.currentTimeMillis
      if (!this.isContradicted(since)) {
        yield* Effect.logError("others deny what a provider has reported: it does not serve for an hour").pipe(
          Effect.annotateLogs({ host, reason: detail })
        )
      }
      const error = new RpcError({ host, method: "eth_getLogs", reason: "contradicted", detail })
      this.#contradicted = { error, since, until: since + contradictedFor }
    })
  }

  /** When it can be asked again: `now`, or at the end of its cooldown. */
  mayServeAt(now: number): number {
    return this.isCoolingDown(now) && !this.isLagging ? (this.#cooldown?.until ?? now) : now
  }

  /** Its last failure, until the next success. */
  get cooldown(): Cooldown | undefined {
    return this.#cooldown
  }
}
