import { promises as dns } from "node:dns"
import { readFile } from "node:fs/promises"
import { Context, Data, Effect, Either, Layer } from "effect"

/** The name has no address, or none was found within the deadline. */
export class NameNotResolved extends Data.TaggedError("NameNotResolved")<{ readonly reason: string }> {}

/** Resolves a host name to at least one IP address. */
export type Resolve = (name: string) => Effect.Effect<ReadonlyArray<string>, NameNotResolved>

/** Where names are looked up. */
export interface NameSources {
  readonly hostsFile: string
  /** Name servers, `address` or `address:port`; undefined: those of the system. */
  readonly servers: ReadonlyArray<string> | undefined
  /** Milliseconds that a name server has, twice that at the second try. It is c-ares that waits, by the machine's own time. */
  readonly timeout?: number
}

/** The deadline of a look-up. */
const deadline = "5 seconds"

/** hosts(5): an address, then its names; a name may have several lines. */
const addressesIn = (hosts: string, name: string): ReadonlyArray<string> =>
  hosts.split("\n").flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/)
    return names.some((alias) => alias.toLowerCase() === name) ? [address] : []
  })

type Family = "resolve4" | "resolve6"

const query = (name: string, family: Family, { servers, timeout = 1_500 }: NameSources): ReturnType<Resolve> =>
  Effect.tryPromise({
    try: (signal) => {
      // One resolver per query: only so can one query be cancelled. It also rereads the system's name servers.
      const resolver = new dns.Resolver({ timeout, tries: 2 })
      if (servers !== undefined) resolver.setServers(servers)
      signal.addEventListener("abort", () => resolver.cancel())
      return resolver[family](name)
    },
    catch: (error) => new NameNotResolved({ reason: (error as NodeJS.ErrnoException).code ?? "no address" })
  }).pipe(
    Effect.timeoutFail({ duration: deadline, onTimeout: () => new NameNotResolved({ reason: "no answer in time" }) })
  )

/**
 * Resolves host names from the hosts file, otherwise from the name servers. Not by `getaddrinfo`: it cannot be cancelled
 * and Node runs only two at a time, so that a few names whose servers are dead would delay all others.
 */
export class Resolver extends Context.Tag("tilld/Webhooks/Resolver")<Resolver, { readonly resolve: Resolve }>() {
  static readonly from = (sources: NameSources) =>
    Layer.succeed(Resolver, {
      resolve: Effect.fn("Resolver.resolve")(function* (name: string) {
        const hosts = yield* Effect.orElseSucceed(
          Effect.tryPromise(() => readFile(sources.hostsFile, "utf8")),
          () => ""
        )
        const known = addressesIn(hosts, name)
        if (known.length > 0) return known
        // A failure for one address family does not affect the other.
        const [four, six] = yield* Effect.all(
          [Effect.either(query(name, "resolve4", sources)), Effect.either(query(name, "resolve6", sources))],
          { concurrency: 2 }
        )
        const found = [four, six].flatMap(Either.getOrElse((): ReadonlyArray<string> => []))
        return found.length === 0 && Either.isLeft(four) ? yield* four.left : found
      })
    })

  static readonly layer = Resolver.from({ hostsFile: "/etc/hosts", servers: undefined })
}
