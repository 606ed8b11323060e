/**
 * Whose turn it is to be worked on. Requests with a key begin as they come, unless that has taken this turn of the event loop
 * for long: then they wait, and accounts take turns, while others are read and what is ready is sent. Of all others (pages,
 * public documents, unknown paths, refused keys) one begins in a turn of the event loop, however many clients ask, so that
 * requests with a key and the workers always come in between. Those that wait take turns by client, known people before
 * strangers. What waits is bounded: the client with most requests loses its newest; with a key, by the requests of connections.
 */
import { Effect, Stream } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { FairQueue } from "../lib/FairQueue.ts"
import type { Pieces } from "./HttpReply.ts"
import type { Hold } from "./PageHandler.ts"
import { partTurn } from "./parts.ts"
import type { Requester } from "./Visitors.ts"

export const overloaded = new ApiError({
  code: "OVERLOADED",
  message: "Too many requests without a valid key are waiting: try again as soon as Retry-After says.",
  headers: { "retry-after": "5" }
})

/** Most requests that wait, of known people and of strangers each. */
const capacity = 256
/** This many do not wait for long: their connections do not count as waiting. */
const soon = 32
/** Every so many turns a stranger comes before known people. */
const strangersTurn = 8

/** Milliseconds of a turn of the event loop after which requests with a key wait: of the longest lists there are three. */
const longTurn = 20
/** Of those that wait, so many begin in a turn: enough for a commit that many share. */
const keysATurn = 8

export interface Turns {
  /** Lets `work` run at its visitor's turn; `refused` when too many are before it. */
  readonly run: <A, E>(
    visitor: Requester,
    hold: Hold,
    work: Effect.Effect<A, E>,
    refused: Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
  /** The wait of a request with a key; undefined where it may begin at once. */
  readonly ofAccount: (account: string) => Effect.Effect<void> | undefined
  /** A streamed body, whose parts of long work take turns. Other pieces do not wait: streams are limited by their number. */
  readonly inTurns: (visitor: Requester, rest: Pieces) => Pieces
}

export const makeTurns = (): Turns => {
  const known = new FairQueue<(hasCome: boolean) => void>(capacity)
  const strangers = new FairQueue<(hasCome: boolean) => void>(capacity)
  let turns = 0
  /** One has begun in this turn of the event loop. */
  let isTaken = false

  const take = () => {
    isTaken = true
    setImmediate(() => {
      turns += 1
      const [first, second] = turns % strangersTurn === 0 ? [strangers, known] : [known, strangers]
      const next = first.next() ?? second.next()
      isTaken = false
      if (next === undefined) return
      take()
      next(true)
    })
  }

  const keyed = new FairQueue<() => void>(Number.POSITIVE_INFINITY)
  /** When this turn of the event loop has lasted long; undefined before the first request with a key in it. */
  let turnEnds: number | undefined
  const takeKeyed = () => {
    turnEnds = undefined
    for (let begun = 0; begun < keysATurn; begun++) keyed.next()?.()
    if (keyed.size > 0) begin(0)
  }
  const begin = (ends: number) => {
    turnEnds = ends
    setImmediate(takeKeyed)
  }

  const visitorsTurn = ({ isKnown, name }: Requester) =>
    Effect.async<boolean>((resume) => {
      const queue = isKnown ? known : strangers
      const come = (hasCome: boolean) => resume(Effect.succeed(hasCome))
      if (!queue.hasRoomFor(name)) return come(false)
      queue.add(name, come)?.(false)
      if (!isTaken) take()
      return Effect.sync(() => void queue.remove(name, come))
    })

  /**
   * Parts of long work wait for turns of their own, as a stranger's, whoever asks: a customer's page does not wait for a search
   * over thousands of payments. Parts that would be refused go on.
   */
  const partsOf = ({ name }: Requester) => Effect.asVoid(visitorsTurn({ name: `${name} at length`, isKnown: false }))

  return {
    run: (visitor, hold, work, refused) =>
      Effect.suspend(() => {
        if (!isTaken) {
          take()
          return work
        }
        const turn = known.size + strangers.size < soon ? visitorsTurn(visitor) : hold(visitorsTurn(visitor))
        return Effect.flatMap(turn, (hasCome) => (hasCome ? work : refused))
      }).pipe(Effect.locally(partTurn, partsOf(visitor))),
    ofAccount: (account) => {
      const now = performance.now()
      if (turnEnds === undefined) begin(now + longTurn)
      if (turnEnds === undefined || now < turnEnds) return undefined
      return Effect.async<void>((resume) => {
        const come = () => resume(Effect.void)
        keyed.add(account, come)
        return Effect.sync(() => void keyed.remove(account, come))
      })
    },
    inTurns: (visitor, rest) => Stream.unwrapScoped(Effect.as(Effect.locallyScoped(partTurn, partsOf(visitor)), rest))
  }
}
