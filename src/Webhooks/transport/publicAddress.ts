import ipaddr from "ipaddr.js"

/** An IP address: 4 or 16 bytes, in network order. */
export type IpBytes = ReadonlyArray<number>

/** A CIDR block. */
export interface AddressBlock {
  readonly bytes: IpBytes
  readonly bits: number
}

/** `10.0.0.0/8`, `fc00::/7`. Throws when it is neither. */
export const parseBlock = (cidr: string): AddressBlock => {
  const [address, bits] = ipaddr.parseCIDR(cidr)
  return { bytes: address.toByteArray(), bits }
}

/** The bytes of an IP literal without brackets, undefined when `text` is not one. */
export const parseAddress = (text: string): IpBytes | undefined =>
  ipaddr.isValid(text) ? ipaddr.parse(text).toByteArray() : undefined

/**
 * Whether `address` lies in `block`. An IPv4 address is in no IPv6 block and the reverse, even if one embeds the other.
 */
export const isWithinBlock = (address: IpBytes, { bytes, bits }: AddressBlock): boolean => {
  if (address.length !== bytes.length) return false
  return bytes.every((byte, i) => {
    const mask = 0xff & ~(0xff >> Math.min(8, Math.max(0, bits - 8 * i)))
    return (byte & mask) === ((address[i] ?? 0) & mask)
  })
}

/** Whether `address` lies in one of `blocks`. */
export const inAny = (address: IpBytes, blocks: ReadonlyArray<AddressBlock>): boolean =>
  blocks.some((block) => isWithinBlock(address, block))

// https://www.iana.org/assignments/iana-ipv4-special-registry, with 192.0.0.0/24 and 192.88.99.0/24 whole (the few
// reachable addresses in them are anycast services, not hosts), and multicast, which has a registry of its own.
const specialIpv4 = [
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
].map(parseBlock)

// Public hosts have addresses of 2000::/3: IANA has given out no other global unicast space. That leaves out loopback,
// mapped, compatible and translated IPv4, discard, SRv6, unique-local, link-local, site-local and multicast.
const globalUnicast = parseBlock("2000::/3")

// What https://www.iana.org/assignments/iana-ipv6-special-registry takes from it: protocol assignments with Teredo,
// benchmarking and ORCHID (whole: none of them is a host's address), documentation, 6to4.
const specialIpv6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"].map(parseBlock)

// RFC 6052: the network's translator turns it into the IPv4 address of the last 32 bits.
const nat64 = parseBlock("64:ff9b::/96")

// RFC 5214: an interface identifier that tunnels to the IPv4 address of the last 32 bits.
const isIsatap = (address: IpBytes) =>
  ((address[8] ?? 0) & 0xfd) === 0 && address[9] === 0 && address[10] === 0x5e && address[11] === 0xfe

/** Whether this is a host's address on the public internet. */
export const isPublic = (address: IpBytes): boolean => {
  if (address.length === 4) return !inAny(address, specialIpv4)
  if (isWithinBlock(address, nat64)) return isPublic(address.slice(12))
  return isWithinBlock(address, globalUnicast) && !inAny(address, specialIpv6) && !isIsatap(address)
}

// Metadata services of clouds, which give out a machine's credentials. All link-local addresses: AWS, Azure, Google and
// most others at 169.254.169.254, ECS at .170.2, EKS at .170.23. Also: Alibaba, Azure's wire server, Oracle; and over
// IPv6 AWS, Google, Oracle, Scaleway, Linode and Alibaba.
const metadata = [
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
].map(parseBlock)

const pick = (address: IpBytes, places: ReadonlyArray<number>): IpBytes => places.map((i) => address[i] ?? 0)
const lastFour = (address: IpBytes) => address.slice(12)

/** The ways in which an IPv6 address can stand for an IPv4 address, or for two. */
const embeddings: ReadonlyArray<readonly [block: AddressBlock, ipv4: (address: IpBytes) => ReadonlyArray<IpBytes>]> = [
  [parseBlock("::/96"), (address) => [lastFour(address)]],
  [parseBlock("::ffff:0:0/96"), (address) => [lastFour(address)]],
  [parseBlock("::ffff:0:0:0/96"), (address) => [lastFour(address)]],
  [nat64, (address) => [lastFour(address)]],
  // RFC 8215: the prefix that a network chose in it may have any of RFC 6052's lengths.
  [
    parseBlock("64:ff9b:1::/48"),
    (address) => [
      pick(address, [6, 7, 9, 10]),
      pick(address, [7, 9, 10, 11]),
      pick(address, [9, 10, 11, 12]),
      lastFour(address)
    ]
  ],
  [parseBlock("2002::/16"), (address) => [address.slice(2, 6)]],
  // RFC 4380: Teredo's server, and its client inverted.
  [parseBlock("2001::/32"), (address) => [address.slice(4, 8), lastFour(address).map((byte) => byte ^ 0xff)]]
]

/** The IPv4 addresses that an IPv6 address may lead to, or stand for. */
export const embeddedIpv4 = (address: IpBytes): ReadonlyArray<IpBytes> => [
  ...embeddings.flatMap(([block, ipv4]) => (isWithinBlock(address, block) ? ipv4(address) : [])),
  ...(isIsatap(address) ? [lastFour(address)] : [])
]

/** Whether a cloud's metadata service may be at this address, or at an IPv4 address that it embeds. */
export const isMetadata = (address: IpBytes): boolean =>
  inAny(address, metadata) || (address.length === 16 && embeddedIpv4(address).some((ipv4) => inAny(ipv4, metadata)))
