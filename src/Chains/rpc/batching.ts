/**
 * How the calls of one client are sent: paced by its rate limiter, and in batches that the provider takes. Whether a
 * refusal is of the batch does not depend on its words, of which each provider has its own: one of the calls is sent
 * again alone. If it is served, the batch was too long, and the others follow in smaller ones, down to single calls. If
 * it is not, the refusal stands: a provider that serves nothing gets one further call, not all of them. Used by Rpc.ts.
 */
import { Array as Arr, Clock, Duration, Effect, Either } from "effect"
import type { CallResult, RpcClient } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

/** Minimum calls per second, however often a provider refuses: fewer could not follow a chain. */
const slowest = 10
/** After each interval without a refusal the rate is raised by this factor, to find the provider's limit. */
const raiseAgainMillis = 60_000
const tryMore = 1.25
/** Calls per second above which the limit is dropped. */
const fastest = 5_000
/** Burst: unused calls of the last milliseconds that may be made at once. */
const creditMillis = 1_000
/** A refusal may come this many seconds after its call: the deadline of a response. */
const secondsBack = 6
/** The maximum wait of a call, in milliseconds, also where the clock was set. */
const longestWait = 60_000

const unlimited = Number.POSITIVE_INFINITY

/**
 * The rate limiter of one provider's client. Calls are not delayed until the provider refuses one as too many; from
 * then on the rate is half of the busiest second before that, and rises slowly. So a long catch-up stays below the
 * provider's limit, without repeated cooldowns. Times are Unix milliseconds.
 */
export class RateLimiter {
  #perSecond = unlimited
  /** The time up to which the calls reserved so far use up the rate. */
  #paidAt = 0
  #changedAt = 0
  /** Calls of the last seconds, by second. */
  readonly #made = new Map<number, number>()

  /** Calls a second; infinite without a limit. */
  get perSecond(): number {
    return this.#perSecond
  }

  /** Whether a refusal cannot lower it. */
  get isSlowest(): boolean {
    return this.#perSecond <= slowest
  }

  /** Reserves some calls, and returns for how many milliseconds they have to wait. */
  reserve(calls: number, now: number): number {
    this.#count(calls, now)
    this.#resetIfSetBack(now)
    this.#grow(now)
    if (this.#perSecond === unlimited) return 0
    const start = Math.max(now, this.#paidAt)
    this.#paidAt = Math.max(now - creditMillis, this.#paidAt) + this.#cost(calls)
    return Math.min(start - now, longestWait)
  }

  /** Cancels the reservation of calls that will not be made. */
  giveBack(calls: number): void {
    if (this.#perSecond !== unlimited) this.#paidAt -= this.#cost(calls)
  }

  /** Lowers the rate: the provider has refused a call because of its rate limit. */
  refused(now: number): void {
    this.#resetIfSetBack(now)
    // Calls that were sent together are refused together: they lower the rate once.
    if (this.#perSecond !== unlimited && now - this.#changedAt < creditMillis) return
    const busiest = Math.max(0, ...this.#made.values())
    this.#perSecond = Math.max(slowest, Math.min(this.#perSecond, busiest) / 2)
    this.#changedAt = now
    this.#paidAt = Math.max(this.#paidAt, now)
    this.#made.clear()
  }

  #cost(calls: number): number {
    return (calls * 1000) / this.#perSecond
  }

  /** Starts again after the clock was set back, so that no call waits for a time far ahead. */
  #resetIfSetBack(now: number): void {
    if (now >= this.#changedAt) return
    this.#changedAt = now
    this.#paidAt = now
    this.#made.clear()
  }

  #grow(now: number): void {
    while (this.#perSecond < fastest && now - this.#changedAt >= raiseAgainMillis) {
      this.#perSecond *= tryMore
      this.#changedAt += raiseAgainMillis
    }
    if (this.#perSecond >= fastest) this.#perSecond = unlimited
  }

  #count(calls: number, now: number): void {
    const second = Math.floor(now / 1000)
    this.#made.set(second, (this.#made.get(second) ?? 0) + calls)
    for (const old of this.#made.keys()) if (old <= second - secondsBack) this.#made.delete(old)
  }
}

/** A refused length is tried again after this, since plans and nodes change. Milliseconds. */
const tryMoreMillis = Duration.toMillis("1 hour")
/** Rates are limited by the second: the wait before a call that exceeded one is sent again. */
const rateInterval = Duration.seconds(1)

/** Calls under way at once of a provider that takes no batches: one after another, a round would take as long as all of them. */
const singlesAtOnce = 4

/** Reasons that have another cause than the length of the batch. */
const otherCauses: ReadonlySet<RpcReason> = new Set(["unreachable", "timeout", "range", "state", "missing"])
/** Reasons of one call that may come of the calls beside it. */
const causedBeside: ReadonlySet<RpcReason> = new Set(["refused", "too_large", "rate_limited"])

const errorOf = (reply: CallResult): RpcError | undefined => (Either.isLeft(reply) ? reply.left : undefined)

/** Sends calls by `exchange`, which is one HTTP request and its response. */
export const makeBatching = (exchange: RpcClient["sendEach"]): Pick<RpcClient, "batchLimit" | "sendEach"> => {
  const rateLimiter = new RateLimiter()
  let limit = Number.POSITIVE_INFINITY
  let limitedAt = 0

  const limitTo = (calls: number) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      limit = calls
      limitedAt = now
    })

  /** A refusal lowers it; it doubles after an hour without one, and after the clock was set. */
  const batchLimit = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.map(Math.abs(now - limitedAt) < tryMoreMillis ? Effect.void : limitTo(limit * 2), () => limit)
  )

  /** Waits until the rate limiter allows these calls. */
  const waitForRate = (calls: number) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const wait = rateLimiter.reserve(calls, now)
      if (wait === 0) return Effect.void
      return Effect.onInterrupt(Effect.sleep(wait), () => Effect.sync(() => rateLimiter.giveBack(calls)))
    })

  const noteRate = (errors: ReadonlyArray<RpcError | undefined>) =>
    errors.some((error) => error?.reason === "rate_limited")
      ? Effect.map(Clock.currentTimeMillis, (now) => rateLimiter.refused(now))
      : Effect.void

  const paced: RpcClient["sendEach"] = (calls) =>
    Effect.zipRight(waitForRate(calls.length), exchange(calls)).pipe(
      Effect.tapBoth({
        onFailure: (error) => noteRate([error]),
        onSuccess: (replies) => noteRate(replies.map(errorOf))
      })
    )

  /** Whether a whole batch may be refused for its length. A limit of rates is believed while the rate can be lowered. */
  const mayBeOfLength = ({ reason, retryAfter }: RpcError) =>
    retryAfter === undefined && !otherCauses.has(reason) && (reason !== "rate_limited" || rateLimiter.isSlowest)

  /** The indexes of the calls to send again; all of them where the batch was refused. */
  const openOf = (sent: Either.Either<ReadonlyArray<CallResult>, RpcError>, calls: number): ReadonlyArray<number> => {
    const all = Arr.makeBy(calls, (i) => i)
    if (Either.isLeft(sent)) return mayBeOfLength(sent.left) ? all : []
    const reasons = sent.right.map((reply) => errorOf(reply)?.reason)
    const open = all.filter((i) => causedBeside.has(reasons[i] ?? "garbage"))
    // Some report the refusal of a batch on its first call, and nothing on the others.
    return open.length > 0 && !reasons.includes(undefined) ? all : open
  }

  const sendBatch: RpcClient["sendEach"] = (calls) =>
    Effect.gen(function* () {
      if (calls.length < 2) return yield* paced(calls)
      const sent = yield* Effect.either(paced(calls))
      const maxCalls = Either.isLeft(sent) ? sent.left.maxCalls : undefined
      if (maxCalls !== undefined && maxCalls < calls.length) {
        yield* limitTo(maxCalls)
        return yield* sendEach(calls)
      }
      const open = new Set(openOf(sent, calls.length))
      const [first, ...others] = calls.filter((_, i) => open.has(i))
      if (first === undefined) return yield* sent
      const isOfRate = Either.isRight(sent) && sent.right.some((reply) => errorOf(reply)?.reason === "rate_limited")
      if (isOfRate) yield* Effect.sleep(rateInterval)
      const alone = yield* Effect.either(paced([first]))
      if (Either.isLeft(alone) || alone.right.some(Either.isLeft)) return yield* sent
      // A few calls above the rate say nothing about the length.
      if (!isOfRate || open.size > calls.length / 2) yield* limitTo(Math.floor(calls.length / 2))
      const again = [...alone.right, ...(others.length > 0 ? yield* sendEach(others) : [])]
      const kept = Either.getOrElse(sent, () => [])
      return calls.flatMap((_, i) => (open.has(i) ? again.splice(0, 1) : (kept[i] ?? [])))
    })

  /** Sends one batch, or several of the length that the provider takes. None exceeds the calls of a second. */
  const sendEach: RpcClient["sendEach"] = (calls) =>
    Effect.flatMap(batchLimit, (most) => {
      const atOnce = Math.min(most, Math.floor(rateLimiter.perSecond))
      if (calls.length <= atOnce) return sendBatch(calls)
      const concurrency = atOnce === 1 ? singlesAtOnce : 1
      return Effect.map(Effect.forEach(Arr.chunksOf(calls, atOnce), sendEach, { concurrency }), Arr.flatten)
    })

  return { batchLimit, sendEach }
}
