import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setImmediate as eventLoopTurn } from "node:timers/promises"
import { Clock, Duration, Effect, Either } from "effect"
import { makeClient, type RpcClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import type { Pause } from "./wire.ts"

/** The client's wait for a response, in milliseconds: its other sleeps are from its rate limiter. */
const deadline = 5_000
/** In which what was written has reached the client. */
const turns = 3

export interface Asked extends RpcRequest {
  readonly id: number
}

/** Answers one batch, and says when it only waits. */
export type Answerer = (calls: ReadonlyArray<Asked>, response: ServerResponse, pause: Pause) => Promise<void>

/**
 * The way to one provider: a real server on this machine, the daemon's own client, and what virtual time has to know of
 * both. Time may pass while nothing is on its way: while the client waits for its turn, or the server for time.
 */
export class Line {
  readonly #server = createServer((request, response) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => void this.#answer([JSON.parse(Buffer.concat(parts).toString())].flat(), response))
    response.on("error", () => undefined)
  })
  #clock: Clock.Clock | undefined
  #open = 0
  #paced = 0
  /** The request that is answered now. */
  #request = 0
  #isStill = false
  /** Who answers. */
  answerer: Answerer | undefined
  /** How the last exchange failed, and what was asked. */
  failure: { readonly error: RpcError; readonly calls: ReadonlyArray<RpcRequest> } | undefined

  listen(): Promise<void> {
    // Heads that are not HTTP come from this server.
    this.#server.on("clientError", (_, socket) => socket.destroy())
    return new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve))
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  /** The client waits for an answer. */
  get isOpen(): boolean {
    return this.#open > 0
  }

  /** Something is on its way. */
  get isBusy(): boolean {
    return this.#open > this.#paced && !this.#isStill
  }

  async #answer(calls: ReadonlyArray<Asked>, response: ServerResponse): Promise<void> {
    this.#request++
    this.#isStill = false
    const request = this.#request
    const still = async () => {
      for (let i = 0; i < turns; i++) await eventLoopTurn()
      if (this.#request === request) this.#isStill = true
    }
    await this.answerer?.(calls, response, {
      forever: still,
      sleep: async (millis) => {
        const clock = this.#clock ?? Clock.make()
        await still()
        await Effect.runPromise(clock.sleep(Duration.millis(millis)))
        if (this.#request === request) this.#isStill = false
      }
    })
  }

  /** The same clock, by which a client that waits for its turn says so. */
  #paces(clock: Clock.Clock): Clock.Clock {
    return {
      ...clock,
      sleep: (duration) => {
        if (Duration.toMillis(duration) === deadline) return clock.sleep(duration)
        const begin = Effect.sync(() => void this.#paced++)
        return Effect.acquireUseRelease(
          begin,
          () => clock.sleep(duration),
          () => Effect.sync(() => void this.#paced--)
        )
      }
    }
  }

  /** The client, of which it is known when it waits. */
  watched(client: RpcClient): RpcClient {
    return makeClient({
      host: client.host,
      counters: client.counters,
      sendEach: (calls) =>
        Effect.acquireUseRelease(
          Effect.map(Effect.clock, (clock) => {
            this.#clock = clock
            this.#open++
            this.#isStill = false
            this.failure = undefined
            return this.#paces(clock)
          }),
          (clock) => Effect.withClock(client.sendEach(calls), clock),
          () => Effect.sync(() => void this.#open--)
        ).pipe(
          Effect.tapBoth({
            onFailure: (error) =>
              Effect.sync(() => {
                this.failure = { error, calls }
              }),
            onSuccess: (replies) =>
              Effect.sync(() => {
                const failed = replies.find(Either.isLeft)
                if (failed !== undefined) this.failure = { error: failed.left, calls }
              })
          })
        )
    })
  }
}
