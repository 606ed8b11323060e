/**
 * Whose turn it is to be worked on. Requests with a key begin as they come, unless that has taken this turn of the event loop
 * for long: then they wait, and accounts take turns, while others are read and what is ready is sent. Of all others (pages,
 * public documents, unknown paths, refused keys) one begins in a turn of the event loop, however many clients ask, so that
 * requests with a key and the workers always come in between: people who are signed in before strangers, of whom no more wait
 * than are soon served. How much of that one address may ask for is for the proxy in front to limit.
 */
import { Effect, Stream } from "effect"
import { KnownFirst } from "../Auth/KnownFirst.ts"
import { ApiError } from "../Domain/ApiError.ts"
import { eventLoopTurn } from "../lib/waiting.ts"
import { FairQueue } from "./FairQueue.ts"
import type { Pieces } from "./HttpReply.ts"
import type { Hold } from "./PageHandler.ts"
import { partTurn } from "./parts.ts"

export const overloaded = new ApiError({
  code: "OVERLOADED",
  message: "Too many requests without a valid key are waiting: try again as soon as Retry-After says.",
  headers: { "retry-after": "5" }
})

/** Most requests that wait, of people who are signed in and of strangers each. */
const capacity = 256
/** How long others wait for their refusal: clients that ask again at once would take the loop's turns with refusals alone. */
const refusalWait = "5 seconds"
/** This many do not wait for long: their connections do not count as waiting. */
const soon = 32

/** Milliseconds of a turn of the event loop after which requests with a key wait: of the longest lists there are three. */
const longTurn = 20
/** Of those that wait, so many begin in a turn: enough for a commit that many share. */
const keysATurn = 8

export interface Turns {
  /** Lets `work` of a request without a key run at its turn; `refused` when too many are before it. */
  readonly run: <A, E>(
    isKnown: boolean,
    hold: Hold,
    work: Effect.Effect<A, E>,
    refused: Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
  /** The wait of a request with a key; undefined where it may begin at once. */
  readonly ofAccount: (account: string) => Effect.Effect<void> | undefined
  /** A streamed body, whose parts of long work take turns. Other pieces do not wait: streams are limited by their number. */
  readonly inTurns: (rest: Pieces) => Pieces
}

export const makeTurns = (): Turns => {
  const waiting = new KnownFirst<() => void>(capacity)
  /** One has begun in this turn of the event loop. */
  let isTaken = false

  const take = () => {
    isTaken = true
    setImmediate(() => {
      const next = waiting.next()
      isTaken = false
      if (next === undefined) return
      take()
      next()
    })
  }

  const keyed = new FairQueue<() => void>()
  /** When this turn of the event loop has lasted long; undefined before the first request with a key in it. */
  let turnEnds: number | undefined
  const takeKeyed = () => {
    turnEnds = undefined
    for (let begun = 0; begun < keysATurn; begun++) keyed.next()?.()
    if (!keyed.isEmpty) begin(0)
  }
  const begin = (ends: number) => {
    turnEnds = ends
    setImmediate(takeKeyed)
  }

  /** Whether the turn has come: else too many are before it. */
  const turnOf = (isKnown: boolean) =>
    Effect.async<boolean>((resume) => {
      const come = () => resume(Effect.succeed(true))
      if (!waiting.add(come, isKnown)) return resume(Effect.succeed(false))
      if (!isTaken) take()
      return Effect.sync(() => waiting.remove(come))
    })

  /**
   * Parts of long work wait for turns of their own, as a stranger's, whoever asks: a customer's page does not wait for a search
   * over thousands of payments. Parts that would be refused go on in the next turn of the event loop.
   */
  const part = Effect.flatMap(turnOf(false), (hasCome) => (hasCome ? Effect.void : eventLoopTurn))

  return {
    run: (isKnown, hold, work, refused) =>
      Effect.suspend(() => {
        if (!isTaken) {
          take()
          return work
        }
        const turn = waiting.size < soon ? turnOf(isKnown) : hold(turnOf(isKnown))
        const late = Effect.zipRight(hold(Effect.sleep(refusalWait)), refused)
        return Effect.flatMap(turn, (hasCome) => (hasCome ? work : late))
      }).pipe(Effect.locally(partTurn, part)),
    ofAccount: (account) => {
      const now = performance.now()
      if (turnEnds === undefined) begin(now + longTurn)
      if (turnEnds === undefined || now < turnEnds) return undefined
      return Effect.async<void>((resume) => {
        const come = () => resume(Effect.void)
        keyed.add(account, come)
        return Effect.sync(() => keyed.remove(account, come))
      })
    },
    inTurns: (rest) => Stream.unwrapScoped(Effect.as(Effect.locallyScoped(partTurn, part), rest))
  }
}
