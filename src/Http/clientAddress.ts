import type { IncomingMessage } from "node:http"
import ipaddr from "ipaddr.js"

type Address = ipaddr.IPv4 | ipaddr.IPv6

const parse = (text: string): Address | undefined =>
  ipaddr.isValid(text.trim()) ? ipaddr.process(text.trim()) : undefined

const inRange = (address: Address, [network, bits]: readonly [Address, number]): boolean =>
  address.kind() === network.kind() && address.match([network, bits] as [ipaddr.IPv4, number])

/**
 * Who has sent a request: the address at the other end of the connection or, where that is one of the operator's own
 * proxies, the last one in `X-Forwarded-For` that is not. What comes before it anybody could have written.
 *
 * @param trusted CIDRs
 */
export const clientAddressOf = (trusted: ReadonlyArray<string>): ((request: IncomingMessage) => string) => {
  const ranges = trusted.map((cidr) => {
    const [network, bits] = ipaddr.parseCIDR(cidr)
    return [network, bits] as const
  })
  const isProxy = (address: Address) => ranges.some((range) => inRange(address, range))
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
