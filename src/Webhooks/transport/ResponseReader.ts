import { Deferred, Exit, FiberId } from "effect"
import type { Dispatcher } from "undici"
import { NoAnswer } from "./targetConnection.ts"

/** undici's errors for invalid HTTP/1.1 responses, by name or code: parser errors have a code in some versions only. */
const invalid = ["HTTPParserError", "UND_ERR_HEADERS_OVERFLOW", "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"]

/** A response's body is read up to this many bytes; then its connection is dropped. */
const bodyLimit = 16 * 1024

/** Maximum 1xx responses before the final one. Servers send one or two; a flood of them is an invalid response. */
const informationalLimit = 16

/** Bytes of the body that are kept, to show why an attempt failed. */
const keptBytes = 1024

const reasonOf = (error: Error & { readonly code?: string }): string => {
  const code = error.code ?? ""
  if (code.startsWith("ERR_SSL")) return "tls"
  if (invalid.includes(error.name) || invalid.includes(code)) return "invalid response"
  return code === "ECONNRESET" ? "connection reset" : "connection closed"
}

/** One request and its response, as undici reports them to a dispatch handler. */
export class ResponseReader implements Dispatcher.DispatchHandler {
  /** The final status, once the response's headers have arrived. */
  readonly status = Deferred.unsafeMake<number, NoAnswer>(FiberId.none)
  /** Completes at the end of the body, at its limit or at an error. */
  readonly over = Deferred.unsafeMake<void>(FiberId.none)
  #isComplete = false
  readonly #start: Array<Buffer> = []
  #received = 0
  #informational = 0

  /** The response was read to its end: the connection can be used for another request. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** The first bytes of the response's body, as text. */
  get bodyStart(): string {
    return Buffer.concat(this.#start).subarray(0, keptBytes).toString("utf8")
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    if (status >= 200) Deferred.unsafeDone(this.status, Exit.succeed(status))
    else if (++this.#informational > informationalLimit) this.fail("invalid response")
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // A copy: the chunk is a view of the socket's buffer.
    if (this.#received < keptBytes) this.#start.push(Buffer.from(chunk.subarray(0, keptBytes)))
    this.#received += chunk.length
    if (this.#received > bodyLimit) Deferred.unsafeDone(this.over, Exit.void)
  }

  onResponseEnd(): void {
    this.#isComplete = this.#received <= bodyLimit
    Deferred.unsafeDone(this.over, Exit.void)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(reasonOf(error))
  }

  /** Ends the exchange with an error, unless it has its status already. */
  fail(reason: string): void {
    Deferred.unsafeDone(this.status, Exit.fail(new NoAnswer({ reason })))
    Deferred.unsafeDone(this.over, Exit.void)
  }
}
