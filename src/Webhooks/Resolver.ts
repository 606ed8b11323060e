import * as dns from "node:dns"
import { Context, Data, Deferred, Effect, FiberSet, Layer } from "effect"

/** The name has no address, or none was found in time. */
export class NameNotResolved extends Data.TaggedError("NameNotResolved")<{ readonly reason: string }> {}

/** How long whoever asks waits for an answer. */
const deadline = "5 seconds"

/** Lookups at once: each keeps one of Node's four threads busy until the system gives up on it. */
const concurrency = 4

const lookup = (name: string) =>
  Effect.async<ReadonlyArray<string>, NameNotResolved>((resume) => {
    dns.lookup(name, { all: true }, (error, addresses = []) =>
      resume(
        addresses.length > 0
          ? Effect.succeed(addresses.map(({ address }) => address))
          : Effect.fail(new NameNotResolved({ reason: error?.code ?? "no address" }))
      )
    )
  })

/** Host names to IP addresses, as the system resolves them. */
export class Resolver extends Context.Tag("tilld/Webhooks/Resolver")<
  Resolver,
  /** At least one address. */
  { readonly resolve: (name: string) => Effect.Effect<ReadonlyArray<string>, NameNotResolved> }
>() {
  static readonly layer = Layer.scoped(
    Resolver,
    Effect.gen(function* () {
      const slots = yield* Effect.makeSemaphore(concurrency)
      const fork = yield* FiberSet.makeRuntime<never>()
      const underWay = new Map<string, Deferred.Deferred<ReadonlyArray<string>, NameNotResolved>>()

      // A lookup cannot be called off: it keeps its slot until it ends, however long its callers have waited, and whoever
      // asks for the same name meanwhile waits for the same answer.
      const start = (name: string) =>
        Effect.map(Deferred.make<ReadonlyArray<string>, NameNotResolved>(), (answer) => {
          underWay.set(name, answer)
          fork(
            lookup(name).pipe(
              slots.withPermits(1),
              Effect.onExit((exit) => {
                underWay.delete(name)
                return Deferred.done(answer, exit)
              }),
              Effect.ignore
            )
          )
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
}
