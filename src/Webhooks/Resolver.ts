import * as dns from "node:dns"
import { Context, Data, Deferred, Effect, FiberSet, Layer } from "effect"

/** The name has no address, or none was found in time. */
export class NameNotResolved extends Data.TaggedError("NameNotResolved")<{ readonly reason: string }> {}

/** At least one IP address of a host name. */
export type Resolve = (name: string) => Effect.Effect<ReadonlyArray<string>, NameNotResolved>

/** How long whoever asks waits for an answer. */
const deadline = "5 seconds"

/** Look-ups at once: each keeps one of Node's four threads busy until the system gives up on it. */
const concurrency = 4

const systemLookup: Resolve = (name) =>
  Effect.async((resume) => {
    dns.lookup(name, { all: true }, (error, addresses = []) =>
      resume(
        addresses.length > 0
          ? Effect.succeed(addresses.map(({ address }) => address))
          : Effect.fail(new NameNotResolved({ reason: error?.code ?? "no address" }))
      )
    )
  })

/** Host names to IP addresses. */
export class Resolver extends Context.Tag("tilld/Webhooks/Resolver")<Resolver, { readonly resolve: Resolve }>() {
  /** Puts a limit on `lookup`, which is uninterruptible and may take its time. */
  static readonly limiting = (lookup: Resolve) =>
    Layer.scoped(
      Resolver,
      Effect.gen(function* () {
        const slots = yield* Effect.makeSemaphore(concurrency)
        const fork = yield* FiberSet.makeRuntime<never>()
        const underWay = new Map<string, Deferred.Deferred<ReadonlyArray<string>, NameNotResolved>>()

        // A look-up cannot be called off: it keeps its slot until it ends, however long its callers have waited. Whoever
        // asks for the same name meanwhile waits for the same answer, so that a dead name takes one slot and not all.
        const start = Effect.fnUntraced(function* (name: string) {
          const answer = yield* Deferred.make<ReadonlyArray<string>, NameNotResolved>()
          underWay.set(name, answer)
          const end = Effect.sync(() => underWay.delete(name))
          fork(Effect.ensuring(Deferred.complete(answer, slots.withPermits(1)(lookup(name))), end))
          return answer
        })

        const resolve = Effect.fn("Resolver.resolve")(function* (name: string) {
          const answer = underWay.get(name) ?? (yield* start(name))
          return yield* Effect.timeoutFail(Deferred.await(answer), {
            duration: deadline,
            onTimeout: () => new NameNotResolved({ reason: "no answer in time" })
          })
        })

        return { resolve }
      })
    )

  /** As the system resolves them, its hosts file included. */
  static readonly layer = Resolver.limiting(systemLookup)
}
