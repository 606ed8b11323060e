import type { IncomingMessage } from "node:http"
import ipaddr from "ipaddr.js"

type Address = ipaddr.IPv4 | ipaddr.IPv6

const parse = (text: string): Address | undefined =>
  ipaddr.isValid(text.trim()) ? ipaddr.process(text.trim()) : undefined

const inRange = (address: Address, [network, bits]: readonly [Address, number]): boolean =>
  address.kind() === network.kind() && address.match([network, bits] as [ipaddr.IPv4, number])

/**
 * Whether an address is one of the operator's own proxies.
 *
 * @param trusted CIDRs
 */
export const isProxyOf = (trusted: ReadonlyArray<string>): ((address: string) => boolean) => {
  const isProxy = proxies(trusted)
  return (text) => {
    const address = parse(text)
    return address !== undefined && isProxy(address)
  }
}

const proxies = (trusted: ReadonlyArray<string>) => {
  const ranges = trusted.map((cidr) => {
    const [network, bits] = ipaddr.parseCIDR(cidr)
    return [network, bits] as const
  })
  return (address: Address) => ranges.some((range) => inRange(address, range))
}

/** The network that one customer is given: an IPv4 address, or the IPv6 /64 of an address. */
export const networkOf = (text: string): string => {
  const address = parse(text)
  return address instanceof ipaddr.IPv6
    ? `${address.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(":")}::/64`
    : (address?.toString() ?? text)
}

/**
 * The address of a request's client: the peer of the connection or, when that is one of the operator's own proxies, the
 * last address in `X-Forwarded-For` that is not. Addresses before it could be forged by the client.
 *
 * @param trusted CIDRs
 */
export const clientAddressOf = (trusted: ReadonlyArray<string>): ((request: IncomingMessage) => string) => {
  const isProxy = proxies(trusted)
  return ({ headers, socket }) => {
    const peer = socket.remoteAddress ?? ""
    const forwarded = [headers["x-forwarded-for"] ?? []].flat().join(",").split(",")
    let client = parse(peer)
    while (client !== undefined && isProxy(client)) {
      const before = parse(forwarded.pop() ?? "")
      if (before === undefined) break
      client = before
    }
    return client?.toString() ?? peer
  }
}
