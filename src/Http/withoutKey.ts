/**
 * Schedules every request without an accepted key: pages, public documents, unknown paths, and refused keys. Together
 * they have a share of the event loop (`LoopShare.ts`), fairly by the client's network, so that however many clients
 * ask, requests with a key and the workers go first. What a request costs is measured around each stretch in which it
 * keeps the loop. Requests that wait run between two turns of the loop, so that others always come in between.
 */
import { performance } from "node:perf_hooks"
import { Effect, FiberRef, Runtime, type Scheduler, Stream } from "effect"
import { defaultScheduler } from "effect/Scheduler"
import { ApiError } from "../Domain/ApiError.ts"
import type { Pieces } from "./HttpReply.ts"
import { LoopShare, type Sharer } from "./LoopShare.ts"
import type { Hold } from "./PageHandler.ts"
import { partTurn } from "./parts.ts"

export const overloaded = new ApiError({
  code: "OVERLOADED",
  message: "Too many requests without a valid key are waiting: try again as soon as Retry-After says.",
  headers: { "retry-after": "5" }
})

/** How long waiting requests may run in one turn of the event loop, after a turn of so many milliseconds. */
const sliceAfter = (turn: number): number => Math.min(10, Math.max(2, turn / 4))
/** Maximum refusals in one turn: each reply takes time too. */
const mostRefused = 8
/** While there is time, this many do not wait for long: their connections do not count as waiting. */
const soon = 64
/** How often waiting requests are checked, milliseconds: the loop may have been idle meanwhile. */
const lookInterval = 5

interface Turn {
  readonly run: () => void
  readonly refuse: () => void
}

export interface WithoutKey {
  /** Lets `work` run at its owner's turn; `refused` when too many are before it. */
  readonly run: <A, E>(
    owner: Sharer,
    hold: Hold,
    work: Effect.Effect<A, E>,
    refused: Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
  /** A streamed body whose pieces count for the owner. They do not wait, apart from those of long work: streams are limited by their number. */
  readonly measured: (owner: Sharer, rest: Pieces) => Pieces
}

/** The time, and how much of it the event loop was idle; milliseconds since an arbitrary moment. */
export interface LoopTime {
  readonly now: () => number
  readonly idle: () => number
}

const loopTime = Effect.map(
  Effect.clock,
  (clock): LoopTime => ({
    now: () => Number(clock.unsafeCurrentTimeNanos()) / 1e6,
    idle: () => performance.eventLoopUtilization().idle
  })
)

export const makeWithoutKey = Effect.fnUntraced(function* (time?: LoopTime) {
  const { idle, now } = time ?? (yield* loopTime)
  const runFork = Runtime.runFork(yield* Effect.runtime<never>())
  const share = new LoopShare<Turn>(now(), idle())
  let isLooking = false
  let lookedAt = now()
  let slice = sliceAfter(0)
  let usedInTurn = 0
  /** A request was admitted and has not run yet: its cost is not known. */
  let isStarting = false

  const runNext = () => {
    if (share.size === 0 || usedInTurn >= slice || !share.mayRun(now(), idle())) return
    isStarting = true
    share.next()?.run()
  }

  const look = (): void => {
    const at = now()
    for (const { refuse } of share.expire(at, mostRefused)) refuse()
    slice = sliceAfter(at - lookedAt)
    lookedAt = at
    usedInTurn = 0
    isStarting = false
    runNext()
    isLooking = false
    lookAgain()
  }

  /** In the next turn of the event loop, or when time may be used again. */
  const lookAgain = () => {
    if (isLooking || share.size === 0) return
    isLooking = true
    if (share.mayRun(now(), idle())) return void setImmediate(look)
    runFork(Effect.delay(Effect.sync(look), Math.max(1, Math.min(share.due, lookInterval))))
  }

  /** Measures the stretches of a fiber, each from where it is resumed to where it waits again. */
  const schedulerOf = (charged: { readonly owner: Sharer }): Scheduler.Scheduler => ({
    shouldYield: (fiber) => defaultScheduler.shouldYield(fiber),
    scheduleTask: (task, priority, fiber) => {
      const stretch = () => {
        const began = now()
        task()
        const time = now() - began
        usedInTurn += time
        isStarting = false
        share.spent(charged.owner, time)
        runNext()
      }
      defaultScheduler.scheduleTask(stretch, priority, fiber)
    }
  })

  const turnOf = (owner: Sharer) =>
    Effect.async<boolean>((resume) => {
      const turn = { run: () => resume(Effect.succeed(true)), refuse: () => resume(Effect.succeed(false)) }
      const { added, dropped } = share.add(owner, turn, now())
      dropped?.item.refuse()
      lookAgain()
      return Effect.sync(() => share.remove(added))
    })

  /**
   * Work of an owner, measured, whose parts wait for turns of their own. From the second one on they are those of a stranger,
   * whoever asks: a customer's page does not wait for a search over thousands of payments. Parts that would be refused go
   * on.
   */
  const inTurns = (owner: Sharer) => {
    const charged = { owner }
    const turn = Effect.suspend(() => {
      charged.owner = { name: `${owner.name} at length`, weight: 1 }
      return Effect.asVoid(turnOf(charged.owner))
    })
    return { scheduler: schedulerOf(charged), turn }
  }

  const withoutKey: WithoutKey = {
    run: (owner, hold, work, refused) => {
      const { scheduler, turn: part } = inTurns(owner)
      return Effect.suspend(() => {
        const mayRun = share.mayRun(now(), idle(), owner)
        if (!mayRun || isStarting || share.size > 0) {
          const turn = mayRun && share.size < soon ? turnOf(owner) : hold(turnOf(owner))
          return Effect.flatMap(turn, (hasCome) => (hasCome ? work : refused))
        }
        isStarting = true
        share.start(owner)
        // Resumed by the scheduler, so that it is measured.
        return Effect.zipRight(Effect.yieldNow(), work)
      }).pipe(Effect.withScheduler(scheduler), Effect.locally(partTurn, part))
    },
    measured: (owner, rest) => {
      const { scheduler, turn } = inTurns(owner)
      const scheduled = Effect.zipRight(
        Effect.locallyScoped(FiberRef.currentScheduler, scheduler),
        Effect.locallyScoped(partTurn, turn)
      )
      return Stream.unwrapScoped(Effect.as(scheduled, rest))
    }
  }
  return withoutKey
})
