/**
 * Keeps webhooks away from this machine, its network and its cloud (SSRF): only public addresses of other machines may be
 * called, plus those of `webhooks.allow_targets`; metadata addresses and those of `webhooks.deny_targets` never. `check`
 * judges a URL's text when an endpoint or a payment names it; `addresses` judges what a host name resolves to before each
 * connection, and the connection is pinned to these addresses.
 */
import { isIP } from "node:net"
import { networkInterfaces } from "node:os"
import { Context, Data, Effect, Either, Layer } from "effect"
import { Settings } from "../../Settings.ts"
import { embeddedIpv4, type IpBytes, inAny, isMetadata, isPublic, parseAddress, parseBlock } from "./publicAddress.ts"
import { type NameNotResolved, Resolver } from "./Resolver.ts"

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

const notPublic = new TargetRefused({ reason: "target is not a public address" })

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
      const [allowed, denied] = [allowTargets.map(parseBlock), denyTargets.map(parseBlock)]
      const ownAddresses = yield* OwnAddresses
      const isOwn = (bytes: IpBytes): boolean =>
        ownAddresses().some((own) => parseAddress(own)?.toString() === bytes.toString())

      const passes = (address: string): boolean => {
        const bytes = parseAddress(address)
        if (bytes === undefined || isMetadata(bytes)) return false
        // A network with NAT64 takes an IPv6 address to the IPv4 address that it embeds.
        const reached = [bytes, ...embeddedIpv4(bytes)]
        if (reached.some((one) => inAny(one, denied))) return false
        return inAny(bytes, allowed) || (isPublic(bytes) && !reached.some(isOwn))
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
