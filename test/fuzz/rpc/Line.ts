import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setImmediate as eventLoopTurn } from "node:timers/promises"
import { Clock, Duration, Effect, Either } from "effect"
import { makeClient, type RpcClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import type { Pause } from "./wire.ts"

/** The client's wait for a response, in milliseconds: an exchange is under way for as long as it waits so. */
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
 * both. Time may pass while nothing is on its way: while the client waits for its turn, or the server for time in all
 * exchanges that are under way.
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
  #exchanges = 0
  /** Requests in whose answers the server waits for time. */
  #still = 0
  /** How many of those the client has given up, which the server does not know yet. */
  #givenUp = 0
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
    return this.#exchanges > this.#still - this.#givenUp
  }

  async #answer(calls: ReadonlyArray<Asked>, response: ServerResponse): Promise<void> {
    const { socket } = response
    let isStill = false
    const noteStill = (is: boolean) => {
      if (is === isStill || socket === null || (is && socket.destroyed)) return
      isStill = is
      // The response itself may have ended before.
      if (is) socket.once("close", end)
      else socket.off("close", end)
      this.#still += is ? 1 : -1
      this.#givenUp = Math.min(this.#givenUp, Math.max(0, this.#still - this.#exchanges))
    }
    const end = () => noteStill(false)
    const still = async () => {
      for (let i = 0; i < turns; i++) await eventLoopTurn()
      noteStill(true)
    }
    await this.answerer?.(calls, response, {
      forever: still,
      sleep: async (millis) => {
        const clock = this.#clock ?? Clock.make()
        await still()
        await Effect.runPromise(clock.sleep(Duration.millis(millis)))
        noteStill(false)
      }
    })
  }

  /** The same clock, by which an exchange says that it begins and ends. */
  #noting(clock: Clock.Clock): Clock.Clock {
    const end = Effect.sync(() => {
      this.#exchanges--
      this.#givenUp = Math.max(this.#givenUp, this.#still - this.#exchanges)
    })
    return {
      ...clock,
      sleep: (duration) => {
        if (Duration.toMillis(duration) !== deadline) return clock.sleep(duration)
        const begin = Effect.sync(() => void this.#exchanges++)
        return Effect.acquireUseRelease(
          begin,
          () => clock.sleep(duration),
          () => end
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
            this.failure = undefined
            return this.#noting(clock)
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
