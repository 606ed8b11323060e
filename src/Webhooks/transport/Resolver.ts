import { promises as dns } from "node:dns"
import { readFile } from "node:fs/promises"
import { Context, Data, Effect, Either, Layer } from "effect"

/** The name has no address, or none was found in time. */
export class NameNotResolved extends Data.TaggedError("NameNotResolved")<{ readonly reason: string }> {}

/** At least one IP address of a host name. */
export type Resolve = (name: string) => Effect.Effect<ReadonlyArray<string>, NameNotResolved>

/** Where names are looked up. */
export interface NameSources {
  readonly hostsFile: string
  /** Name servers, `address` or `address:port`; undefined: those of the system. */
  readonly servers: ReadonlyArray<string> | undefined
}

/** How long whoever asks waits for an answer, and how long one name server has for it, twice as long at the second try. */
const deadline = "5 seconds"
const server = { timeout: 1_500, tries: 2 }

/** hosts(5): an address, then its names; a name may have several lines. */
const addressesIn = (hosts: string, name: string): ReadonlyArray<string> =>
  hosts.split("\n").flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/)
    return names.some((one) => one.toLowerCase() === name) ? [address] : []
  })

const query = (name: string, family: "resolve4" | "resolve6", servers: NameSources["servers"]): ReturnType<Resolve> =>
  Effect.tryPromise({
    try: (signal) => {
      // One each: only that can be called off by itself, and it reads what the system says of name servers now.
      const resolver = new dns.Resolver(server)
      if (servers !== undefined) resolver.setServers(servers)
      signal.addEventListener("abort", () => resolver.cancel())
      return resolver[family](name)
    },
    catch: (error) => new NameNotResolved({ reason: (error as NodeJS.ErrnoException).code ?? "no address" })
  }).pipe(
    Effect.timeoutFail({ duration: deadline, onTimeout: () => new NameNotResolved({ reason: "no answer in time" }) })
  )

/**
 * Host names to IP addresses: from the hosts file, otherwise from the name servers. The system's own look-up is not asked,
 * since it cannot be called off and runs two at a time, so that a few names whose servers are dead would hold up all
 * others. Here each waits for its own answer alone.
 */
export class Resolver extends Context.Tag("tilld/Webhooks/Resolver")<Resolver, { readonly resolve: Resolve }>() {
  static readonly from = ({ hostsFile, servers }: NameSources) =>
    Layer.succeed(Resolver, {
      resolve: Effect.fn("Resolver.resolve")(function* (name: string) {
        const hosts = yield* Effect.orElseSucceed(
          Effect.tryPromise(() => readFile(hostsFile, "utf8")),
          () => ""
        )
        const known = addressesIn(hosts, name)
        if (known.length > 0) return known
        // A server that fails for one family says nothing of the other.
        const [four, six] = yield* Effect.all(
          [Effect.either(query(name, "resolve4", servers)), Effect.either(query(name, "resolve6", servers))],
          { concurrency: 2 }
        )
        const found = [four, six].flatMap(Either.getOrElse((): ReadonlyArray<string> => []))
        return found.length === 0 && Either.isLeft(four) ? yield* four.left : found
      })
    })

  static readonly layer = Resolver.from({ hostsFile: "/etc/hosts", servers: undefined })
}
