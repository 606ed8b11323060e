/**
 * Keeps webhooks away from this machine, its network and its cloud (SSRF): only public addresses of other machines may be
 * called, plus those of `webhooks.allow_targets`; metadata addresses and those of `webhooks.deny_targets` never. `check`
 * judges a URL's text when an endpoint or a payment names it; `addresses` judges what a host name resolves to before each
 * connection, and the connection is pinned to these addresses.
 */

import { promises as dns } from "node:dns"
import { readFile } from "node:fs/promises"
import { isIP } from "node:net"
import { networkInterfaces } from "node:os"
import { Context, Data, Effect, Either, Layer } from "effect"
import ipaddr from "ipaddr.js"
import { addressInRanges, type IpAddress } from "../../lib/IpRange.ts"
import { Settings } from "../../Settings.ts"

/** The IP literal without brackets in a text, undefined when it is none. An IPv4-mapped one stays what it is. */
export const parseAddress = (text: string): IpAddress | undefined =>
  ipaddr.isValid(text) ? ipaddr.parse(text) : undefined

// https://www.iana.org/assignments/iana-ipv4-special-registry, with 192.0.0.0/24 and 192.88.99.0/24 whole (the few
// reachable addresses in them are anycast services, not hosts), and multicast, which has a registry of its own.
const isSpecialIpv4 = addressInRanges([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4"
])

// Public hosts have addresses of 2000::/3: IANA has given out no other global unicast space. That leaves out loopback,
// mapped, compatible and translated IPv4, discard, SRv6, unique-local, link-local, site-local and multicast.
const isGlobalUnicast = addressInRanges(["2000::/3"])

// What https://www.iana.org/assignments/iana-ipv6-special-registry takes from it: protocol assignments with Teredo,
// benchmarking and ORCHID (whole: none of them is a host's address), documentation, 6to4.
const isSpecialIpv6 = addressInRanges(["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"])

// RFC 6052: the network's translator turns it into the IPv4 address of the last 32 bits.
const isNat64 = addressInRanges(["64:ff9b::/96"])

// RFC 5214: an interface identifier that tunnels to the IPv4 address of the last 32 bits.
const isIsatap = (bytes: IpBytes) =>
  ((bytes[8] ?? 0) & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe

/** Whether this is a host's address on the public internet. */
export const isPublic = (address: IpAddress): boolean => {
  if (address instanceof ipaddr.IPv4) return !isSpecialIpv4(address)
  const bytes = address.toByteArray()
  if (isNat64(address)) return isPublic(new ipaddr.IPv4(bytes.slice(12)))
  return isGlobalUnicast(address) && !isSpecialIpv6(address) && !isIsatap(bytes)
}

// Metadata services of clouds, which give out a machine's credentials. All link-local addresses: AWS, Azure, Google and
// most others at 169.254.169.254, ECS at .170.2, EKS at .170.23. Also: Alibaba, Azure's wire server, Oracle; and over
// IPv6 AWS, Google, Oracle, Scaleway, Linode and Alibaba.
const isMetadataItself = addressInRanges([
  "169.254.0.0/16",
  "100.100.100.200/32",
  "168.63.129.16/32",
  "192.0.0.192/32",
  "fe80::/10",
  "fd00:ec2::/32",
  "fd20:ce::254/128",
  "fd00:c1::a9fe:a9fe/128",
  "fd00:42::42/128",
  "fd00:a9fe:a9fe::1/128",
  "fd00:100::100:200/128"
])

/** In network order. */
type IpBytes = ReadonlyArray<number>

const pick = (bytes: IpBytes, places: IpBytes): IpBytes => places.map((i) => bytes[i] ?? 0)
const lastFour = (bytes: IpBytes) => bytes.slice(12)

/** The ways in which an IPv6 address can stand for an IPv4 address, or for two. */
const embeddings: ReadonlyArray<
  readonly [isSuch: (address: IpAddress) => boolean, ipv4: (bytes: IpBytes) => ReadonlyArray<IpBytes>]
> = [
  [addressInRanges(["::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"]), (bytes) => [lastFour(bytes)]],
  // RFC 8215: the prefix that a network chose in it may have any of RFC 6052's lengths.
  [
    addressInRanges(["64:ff9b:1::/48"]),
    (bytes) => [pick(bytes, [6, 7, 9, 10]), pick(bytes, [7, 9, 10, 11]), pick(bytes, [9, 10, 11, 12]), lastFour(bytes)]
  ],
  [addressInRanges(["2002::/16"]), (bytes) => [bytes.slice(2, 6)]],
  // RFC 4380: Teredo's server, and its client inverted.
  [addressInRanges(["2001::/32"]), (bytes) => [bytes.slice(4, 8), lastFour(bytes).map((byte) => byte ^ 0xff)]],
  [(address) => isIsatap(address.toByteArray()), (bytes) => [lastFour(bytes)]]
]

/** The IPv4 addresses that an IPv6 address may lead to, or stand for. */
const embeddedIpv4 = (address: IpAddress): ReadonlyArray<IpAddress> =>
  address instanceof ipaddr.IPv4
    ? []
    : embeddings
        .flatMap(([isSuch, ipv4]) => (isSuch(address) ? ipv4(address.toByteArray()) : []))
        .map((bytes) => new ipaddr.IPv4([...bytes]))

/** Whether a cloud's metadata service may be at this address, or at an IPv4 address that it embeds. */
export const isMetadata = (address: IpAddress): boolean => [address, ...embeddedIpv4(address)].some(isMetadataItself)

/**
 * tilld will not call this URL. `reason` is shown to the client that gave it. Of an address it says only that it is not
 * public, so that nothing about the internal network is revealed.
 */
export class TargetRefused extends Data.TaggedError("TargetRefused")<{ readonly reason: string }> {
  override get message() {
    return this.reason
  }
}

/** A URL whose text passed `check`. */
export interface Target {
  readonly url: URL
  /** A name without trailing dot, or an IP literal without brackets. */
  readonly host: string
}

const maxLength = 2048

const notPublic = new TargetRefused({ reason: "target is not a public address: tilld listen forwards events to one" })

/** `localhost` and its subdomains are not passed to a resolver: RFC 6761, section 6.3. */
const isLocalhost = (host: string) => host === "localhost" || host.endsWith(".localhost")

// Only the URL parser's result is checked: it normalises every spelling of an IPv4 address (decimal, octal, hex, short,
// full-width, percent-encoded) to four decimal numbers, and rejects IPv6 zones.
const parse = (text: string): Either.Either<Target, TargetRefused> => {
  const refuse = (reason: string) => Either.left(new TargetRefused({ reason }))
  if (text.length > maxLength) return refuse(`must be at most ${maxLength} characters`)
  if (!URL.canParse(text)) return refuse("must be an absolute URL, e.g. https://example.com/webhooks")
  const url = new URL(text)
  if (url.protocol !== "https:") return refuse("must begin with https://")
  if (url.username !== "" || url.password !== "") return refuse("must not contain a user name or a password")
  if (url.port === "0") return refuse("must not have port 0")
  const host = url.hostname.replace(/^\[|\]$|\.$/g, "")
  // Resolvers disagree on empty labels: `127.0.0.1..` is an address to some and a name to others.
  return host.split(".").includes("") ? refuse("must name a host") : Either.right({ url, host })
}

export interface Guard {
  /** Checks the text of a URL: form, host name, IP literals. Resolves nothing. */
  readonly check: (url: string) => Either.Either<Target, TargetRefused>
  /** The only addresses that a connection to the target may be made to. */
  readonly addresses: (target: Target) => Effect.Effect<ReadonlyArray<string>, TargetRefused | NameNotResolved>
}

/** The current addresses of this machine. Some of them may be public. */
export class OwnAddresses extends Context.Reference<OwnAddresses>()("tilld/Webhooks/OwnAddresses", {
  defaultValue: () => (): ReadonlyArray<string> =>
    Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address))
}) {}

export class TargetGuard extends Context.Tag("tilld/Webhooks/TargetGuard")<TargetGuard, Guard>() {
  static readonly layer = Layer.effect(
    TargetGuard,
    Effect.gen(function* () {
      const resolver = yield* Resolver
      const { allowTargets, denyTargets } = (yield* Settings).webhooks
      const [isAllowed, isDenied] = [addressInRanges(allowTargets), addressInRanges(denyTargets)]
      const ownAddresses = yield* OwnAddresses
      const isOwn = (address: IpAddress): boolean =>
        ownAddresses().some((own) => parseAddress(own)?.toNormalizedString() === address.toNormalizedString())

      const passes = (text: string): boolean => {
        const address = parseAddress(text)
        if (address === undefined || isMetadata(address)) return false
        // A network with NAT64 takes an IPv6 address to the IPv4 address that it embeds.
        const reached = [address, ...embeddedIpv4(address)]
        if (reached.some(isDenied)) return false
        return isAllowed(address) || (isPublic(address) && !reached.some(isOwn))
      }
      const localhost = ["127.0.0.1", "::1"].filter(passes)

      const check = (text: string): Either.Either<Target, TargetRefused> =>
        Either.filterOrLeft(
          parse(text),
          ({ host }) => (isLocalhost(host) ? localhost.length > 0 : isIP(host) === 0 || passes(host)),
          () => notPublic
        )

      const addresses = Effect.fn("TargetGuard.addresses")(function* ({ host }: Target) {
        if (isLocalhost(host)) return localhost.length > 0 ? localhost : yield* notPublic
        const resolved = isIP(host) === 0 ? yield* resolver.resolve(host) : [host]
        if (resolved.every(passes)) return resolved
        yield* Effect.logWarning("refused a webhook target that is not public").pipe(
          Effect.annotateLogs({ host, addresses: resolved.filter((address) => !passes(address)).join(" ") })
        )
        return yield* notPublic
      })

      return { check, addresses }
    })
  )
}

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
