import type { IncomingMessage } from "node:http"
import ipaddr from "ipaddr.js"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { addressInRanges, ipAddressOf } from "../lib/IpRange.ts"

/** Addresses in memory: most requests come from few. */
const capacity = 1_000
const networks = new BoundedMap<string, string>(capacity)

/** The network of one customer: an IPv4 address, or the IPv6 /64 of an address. */
export const networkOf = (text: string): string => {
  const known = networks.get(text)
  if (known !== undefined) return known
  const network = parsedNetworkOf(text)
  networks.set(text, network)
  return network
}

const parsedNetworkOf = (text: string): string => {
  const address = ipAddressOf(text)
  return address instanceof ipaddr.IPv6
    ? `${address.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(":")}::/64`
    : (address?.toString() ?? text)
}

/** The network of one operator of many machines: an IPv4 /24, or an IPv6 /48. */
export const wideNetworkOf = (text: string): string => {
  const address = ipAddressOf(text)
  if (address === undefined) return text
  return address instanceof ipaddr.IPv6
    ? `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/48`)}/48`
    : `${ipaddr.IPv4.networkAddressFromCIDR(`${address}/24`)}/24`
}

/**
 * The address of a request's client: the peer of the connection or, when that is one of the operator's own proxies, the
 * last address in `X-Forwarded-For` that is not. Addresses before it could be forged by the client.
 *
 * @param trusted CIDRs
 */
export const clientAddressOf = (trusted: ReadonlyArray<string>): ((request: IncomingMessage) => string) => {
  const isProxy = addressInRanges(trusted)
  const strangers = new BoundedMap<string, string>(capacity)
  return ({ headers, socket }) => {
    const peer = socket.remoteAddress ?? ""
    const stranger = strangers.get(peer)
    if (stranger !== undefined) return stranger
    const forwarded = [headers["x-forwarded-for"] ?? []].flat().join(",").split(",")
    let client = ipAddressOf(peer)
    if (client !== undefined && !isProxy(client)) strangers.set(peer, client.toString())
    while (client !== undefined && isProxy(client)) {
      const before = ipAddressOf(forwarded.pop() ?? "")
      if (before === undefined) break
      client = before
    }
    return client?.toString() ?? peer
  }
}
