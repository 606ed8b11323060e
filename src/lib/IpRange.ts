import { isIP } from "node:net"
import { Either, ParseResult, Schema } from "effect"
import ipaddr from "ipaddr.js"

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6

/** The IP address in a text; undefined when it is none. An IPv4-mapped address (::ffff:192.0.2.1) is the IPv4 address. */
export const ipAddressOf = (text: string): IpAddress | undefined =>
  ipaddr.isValid(text.trim()) ? ipaddr.process(text.trim()) : undefined

const isInRange = (address: IpAddress, [network, bits]: readonly [IpAddress, number]): boolean =>
  address.kind() === network.kind() && address.match([network, bits] as [ipaddr.IPv4, number])

/** Whether an address is in one of some CIDR blocks. An IPv4 address is in no IPv6 block. */
export const addressInRanges = (ranges: ReadonlyArray<string>): ((address: IpAddress) => boolean) => {
  const parsed = ranges.map((range) => ipaddr.parseCIDR(range))
  return (address) => parsed.some((range) => isInRange(address, range))
}

/** The same for the text of an address; no other text is in any block. */
export const inRanges = (ranges: ReadonlyArray<string>): ((text: string) => boolean) => {
  const isIn = addressInRanges(ranges)
  return (text) => {
    const address = ipAddressOf(text)
    return address !== undefined && isIn(address)
  }
}

const rule = "must be an IP address or a CIDR block, such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32"

/** The bits before the IPv4 address in an IPv4-mapped one (RFC 4291, 2.5.5.2). */
const mappedBits = 96

const networkOf = (address: IpAddress, bits: number): IpAddress =>
  address instanceof ipaddr.IPv4
    ? ipaddr.IPv4.networkAddressFromCIDR(`${address}/${bits}`)
    : ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`)

/**
 * The canonical form of a CIDR block: `203.0.113.0/24`, `2001:db8::/32`. An address alone is the block that has only this
 * address, and a block of IPv4-mapped addresses is the IPv4 block. Left: what is wrong with the text, after its name.
 */
export const canonicalRange = (text: string): Either.Either<string, string> => {
  const [host = "", prefix, ...more] = text.split("/", 3)
  // Stricter than ipaddr.js, which also takes 127.1, 0177.0.0.1 and zones.
  const family = host.includes("%") ? 0 : isIP(host)
  if (family === 0 || more.length > 0) return Either.left(rule)
  const length = family === 4 ? 32 : 128
  const bits = prefix === undefined ? length : /^(?:0|[1-9]\d{0,2})$/.test(prefix) ? Number(prefix) : -1
  if (bits < 0 || bits > length) return Either.left(rule)
  const given = ipaddr.parse(host)
  const mapped = given instanceof ipaddr.IPv6 && given.isIPv4MappedAddress() && bits >= mappedBits
  const [address, prefixLength] = mapped ? [given.toIPv4Address(), bits - mappedBits] : [given, bits]
  const network = networkOf(address, prefixLength)
  if (network.toString() === address.toString()) return Either.right(`${network}/${prefixLength}`)
  return Either.left(`has an address inside its block: write ${network}/${prefixLength}, or ${address} for it alone`)
}

/** A CIDR block or an address, in canonical form once decoded. */
export const IpRange = Schema.transformOrFail(Schema.String, Schema.String, {
  strict: true,
  decode: (text, _, ast) => Either.mapLeft(canonicalRange(text), (problem) => new ParseResult.Type(ast, text, problem)),
  encode: ParseResult.succeed
})
