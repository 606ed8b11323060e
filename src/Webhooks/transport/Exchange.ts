import { Deferred, Exit, FiberId } from "effect"
import type { Dispatcher } from "undici"
import { NoAnswer } from "./connection.ts"

/** What undici calls answers that are not HTTP/1.1. Its parser's own errors have a name, and a code in some versions only. */
const invalid = ["HTTPParserError", "UND_ERR_HEADERS_OVERFLOW", "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"]

/** An answer's body is read so far, and then its connection is dropped. */
const bodyLimit = 16 * 1024

/** Informational answers before the one that counts. Servers send one or two; nobody waits through a flood of them. */
const informationalLimit = 16

/** So much of it is kept, for whoever looks for the reason of a failed attempt. */
const keptBytes = 1024

const reasonOf = (error: Error & { readonly code?: string }): string => {
  const code = error.code ?? ""
  if (code.startsWith("ERR_SSL")) return "tls"
  if (invalid.includes(error.name) || invalid.includes(code)) return "invalid response"
  return code === "ECONNRESET" ? "connection reset" : "connection closed"
}

/** One request and its answer, as undici reports them. */
export class Exchange implements Dispatcher.DispatchHandler {
  /** The final status, once its headers are there. */
  readonly status = Deferred.unsafeMake<number, NoAnswer>(FiberId.none)
  /** Nothing more of the body is wanted, or to be had. */
  readonly over = Deferred.unsafeMake<void>(FiberId.none)
  #isComplete = false
  readonly #start: Array<Buffer> = []
  #received = 0
  #informational = 0

  /** The answer was read to its end: its connection can take another request. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** The first bytes of the answer's body, as text. */
  get bodyStart(): string {
    return Buffer.concat(this.#start).subarray(0, keptBytes).toString("utf8")
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    if (status >= 200) Deferred.unsafeDone(this.status, Exit.succeed(status))
    else if (++this.#informational > informationalLimit) this.fail("invalid response")
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // A copy: the chunk is a window on a buffer of the socket's.
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

  /** Nothing more is waited for. */
  fail(reason: string): void {
    Deferred.unsafeDone(this.status, Exit.fail(new NoAnswer({ reason })))
    Deferred.unsafeDone(this.over, Exit.void)
  }
}
