/**
 * How the calls of one client are sent: paced by its rate limiter, and in batches that the provider takes. Whether a
 * refusal is of the batch does not depend on its words, of which each provider has its own: one of the calls is sent
 * again alone. If it is served, the batch was too long, and the others follow in smaller ones, down to single calls. If
 * it is not, the refusal stands: a provider that serves nothing gets one further call, not all of them. Used by Rpc.ts.
 */
import { Array as Arr, Clock, Duration, Effect, Either } from "effect"
import { RateLimiter } from "./RateLimiter.ts"
import type { CallResult, RpcClient } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

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
