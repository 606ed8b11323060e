import { Deferred, Effect } from "effect"
import { ResponseReader } from "./ResponseReader.ts"
import { requestHeaders } from "./requestHeaders.ts"
import type { Target } from "./TargetGuard.ts"
import { type Connection, close, type NoAnswer } from "./targetConnection.ts"

export interface DeliveryRequest {
  readonly url: string
  /** The signature headers. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** One request under way: over one connection or, if that turned out to be closed, over a second one. */
export class OutgoingRequest {
  readonly target: Target
  readonly #request: DeliveryRequest
  #exchange = new ResponseReader()
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

  /** The response was read to its end. */
  get isComplete(): boolean {
    return this.#exchange.isComplete
  }

  get bodyStart(): string {
    return this.#exchange.bodyStart
  }

  /** The address that the request was sent to or, when none accepted a connection, all that were tried. */
  get address(): string | undefined {
    return this.#address
  }

  /** Notes the addresses that are tried now, in turn. */
  dial(addresses: ReadonlyArray<string>): void {
    this.#address = addresses.join(" ")
  }

  /** Sets the connection to send the request over. Nothing else may use it. */
  use(connection: Connection): void {
    this.#connection = connection
    this.#address = connection.address
  }

  /** Sends the request and waits for the response's status. */
  readonly send: Effect.Effect<number, NoAnswer> = Effect.suspend(() => {
    const { pathname, search } = this.target.url
    const headers = { ...requestHeaders, ...this.#request.headers }
    this.#connection?.client.dispatch(
      { method: "POST", path: pathname + search, headers, body: this.#request.body },
      this.#exchange
    )
    return Deferred.await(this.#exchange.status)
  })

  /** Completes when the response's body has ended, or enough of it was read. */
  readonly over: Effect.Effect<void> = Effect.suspend(() => Deferred.await(this.#exchange.over))

  /** Fails when the deadline for the status passes; for the time before the request is sent. */
  readonly expired: Effect.Effect<never, NoAnswer> = Effect.suspend(() =>
    Effect.zipRight(Deferred.await(this.#exchange.status), Effect.never)
  )

  /** Called when the deadline for the status passes. */
  readonly expire = (): void => {
    this.#hasExpired = true
    this.#exchange.fail("timeout")
  }

  /** Drops a connection that failed, for a second try within the same deadline. */
  renew(): void {
    this.close()
    this.#exchange = new ResponseReader()
    if (this.#hasExpired) this.expire()
  }

  /** Closes the connection at once. */
  close(): void {
    if (this.#connection !== undefined) close(this.#connection)
    this.#connection = undefined
  }
}
