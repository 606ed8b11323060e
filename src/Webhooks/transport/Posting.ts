import { Deferred, Effect } from "effect"
import { type Connection, close, type NoAnswer } from "./connection.ts"
import { Exchange } from "./Exchange.ts"
import { fixedHeaders } from "./fixedHeaders.ts"
import type { Target } from "./TargetGuard.ts"

export interface DeliveryRequest {
  readonly url: string
  /** What signs it. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** A request on its way: over one connection or, where that turned out to be closed, over a second. */
export class Posting {
  readonly target: Target
  readonly #request: DeliveryRequest
  #exchange = new Exchange()
  #connection: Connection | undefined
  #address: string | undefined
  #hasExpired = false

  constructor(target: Target, request: DeliveryRequest) {
    this.target = target
    this.#request = request
  }

  get connection(): Connection | undefined {
    return this.#connection
  }

  /** The answer was read to its end. */
  get isComplete(): boolean {
    return this.#exchange.isComplete
  }

  get bodyStart(): string {
    return this.#exchange.bodyStart
  }

  /** The address that the request went to or, where none answered, those that were tried. */
  get address(): string | undefined {
    return this.#address
  }

  /** These are dialled now, in turn. */
  dial(addresses: ReadonlyArray<string>): void {
    this.#address = addresses.join(" ")
  }

  /** A connection that nothing else uses, to send the request over. */
  use(connection: Connection): void {
    this.#connection = connection
    this.#address = connection.address
  }

  /** Sends the request; gives the answer's status. */
  readonly send: Effect.Effect<number, NoAnswer> = Effect.suspend(() => {
    const { pathname, search } = this.target.url
    const headers = { ...fixedHeaders, ...this.#request.headers }
    this.#connection?.client.dispatch(
      { method: "POST", path: pathname + search, headers, body: this.#request.body },
      this.#exchange
    )
    return Deferred.await(this.#exchange.status)
  })

  /** Nothing more of the answer's body is wanted, or to be had. */
  readonly over: Effect.Effect<void> = Effect.suspend(() => Deferred.await(this.#exchange.over))

  /** Fails when the time to the status is over. For as long as nothing was sent. */
  readonly expired: Effect.Effect<never, NoAnswer> = Effect.suspend(() =>
    Effect.zipRight(Deferred.await(this.#exchange.status), Effect.never)
  )

  /** The time to the status is over. */
  readonly expire = (): void => {
    this.#hasExpired = true
    this.#exchange.fail("timeout")
  }

  /** Forgets a connection that failed, in the time that is left. */
  renew(): void {
    this.close()
    this.#exchange = new Exchange()
    if (this.#hasExpired) this.expire()
  }

  /** Ends the connection, and whatever is under way over it. */
  close(): void {
    if (this.#connection !== undefined) close(this.#connection)
    this.#connection = undefined
  }
}
