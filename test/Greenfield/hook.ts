// The receiver of a shop system: sorts the deliveries of shop plugins' endpoints by path and invoice, as they arrive.
import { createHmac, timingSafeEqual } from "node:crypto"
import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { Effect, Queue } from "effect"
import { type Received, startReceiver } from "../../src/Sandbox/Receiver.ts"
import { temporaryFolder } from "../lib/store.ts"

/** A delivery as it arrived. */
export interface Delivery {
  readonly request: Received
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks into, field by field
  readonly body: any
}

/** As the PHP SDK checks it: the header is `sha256=` and the HMAC of the exact bytes. */
export const isSignedWith = (secret: string, { body, headers }: Pick<Received, "body" | "headers">): boolean => {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`)
  const given = Buffer.from(String(headers["btcpay-sig"] ?? ""))
  return given.length === expected.length && timingSafeEqual(given, expected)
}

export const startHook = Effect.gen(function* () {
  const caFile = join(yield* temporaryFolder, "ca.pem")
  const receiver = yield* startReceiver({ caFile }).pipe(Effect.provide(NodeFileSystem.layer))
  const queues = new Map<string, Queue.Queue<Delivery>>()
  const queueOf = (path: string, invoice: string) =>
    Effect.gen(function* () {
      const queue = queues.get(`${path} ${invoice}`) ?? (yield* Queue.unbounded<Delivery>())
      queues.set(`${path} ${invoice}`, queue)
      return queue
    })
  yield* Effect.gen(function* () {
    const request = yield* receiver.take
    const body = JSON.parse(request.body.toString("utf8"))
    yield* (yield* queueOf(request.path, String(body.invoiceId))).offer({ request, body })
  }).pipe(Effect.forever, Effect.forkScoped)
  /** Waits for the next delivery of an invoice at a path. */
  const next = (path: string, invoice: string) => Effect.flatMap(queueOf(path, invoice), Queue.take)
  /** The next of them. */
  const take = (path: string, invoice: string, count: number) => Effect.replicateEffect(next(path, invoice), count)
  return { ...receiver, caFile, next, take }
})
export type Hook = Effect.Effect.Success<typeof startHook>
