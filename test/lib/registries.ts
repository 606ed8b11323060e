import * as fc from "fast-check"
import ipaddr from "ipaddr.js"

// The IANA special-purpose registries as of October 2025: block, and whether it is globally reachable. "N/A" of 6to4 and
// Teredo, and blocks that were withdrawn, count as not. The most specific row of an address decides. Left out are the
// reachable rows inside 192.0.0.0/24 and 2001::/23: anycast services and identifiers, where no receiver lives.
const registry: ReadonlyArray<readonly [cidr: string, reachable: boolean]> = [
  ["0.0.0.0/8", false],
  ["10.0.0.0/8", false],
  ["100.64.0.0/10", false],
  ["127.0.0.0/8", false],
  ["169.254.0.0/16", false],
  ["172.16.0.0/12", false],
  ["192.0.0.0/24", false],
  ["192.0.0.0/29", false],
  ["192.0.0.8/32", false],
  ["192.0.0.170/31", false],
  ["192.0.2.0/24", false],
  ["192.31.196.0/24", true],
  ["192.52.193.0/24", true],
  ["192.88.99.0/24", false],
  ["192.168.0.0/16", false],
  ["192.175.48.0/24", true],
  ["198.18.0.0/15", false],
  ["198.51.100.0/24", false],
  ["203.0.113.0/24", false],
  ["240.0.0.0/4", false],
  ["255.255.255.255/32", false],
  ["::1/128", false],
  ["::/128", false],
  ["::ffff:0:0/96", false],
  ["64:ff9b:1::/48", false],
  ["100::/64", false],
  ["100:0:0:1::/64", false],
  ["2001::/23", false],
  ["2001::/32", false],
  ["2001:2::/48", false],
  ["2001:10::/28", false],
  ["2001:db8::/32", false],
  ["2002::/16", false],
  ["2620:4f:8000::/48", true],
  ["3fff::/20", false],
  ["5f00::/16", false],
  ["fc00::/7", false],
  ["fe80::/10", false],
  // Not in those registries: multicast, and what was withdrawn but may still be routed inside a network.
  ["224.0.0.0/4", false],
  ["ff00::/8", false],
  ["fec0::/10", false],
  ["::/96", false],
  ["::ffff:0:0:0/96", false]
]

interface Range {
  readonly bits: 32 | 128
  readonly first: bigint
  readonly last: bigint
  readonly reachable: boolean
}

const toBigInt = (bytes: ReadonlyArray<number>) => bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)

const ranges: ReadonlyArray<Range> = registry.map(([cidr, reachable]) => {
  const [address, prefix] = ipaddr.parseCIDR(cidr)
  const bits = address.kind() === "ipv4" ? 32 : 128
  const size = 1n << BigInt(bits - prefix)
  const first = toBigInt(address.toByteArray())
  return { bits, first, last: first + size - 1n, reachable }
})

/** In network order. */
export const toBytes = (value: bigint, bits: number): ReadonlyArray<number> =>
  Array.from({ length: bits / 8 }, (_, i) => Number((value >> BigInt(bits - 8 - 8 * i)) & 0xffn))

const isIsatap = (value: bigint) => [0x5efen, 0x2005efen].includes((value >> 32n) & 0xffffffffn)

/** Public in the words of the registries: no special purpose, and of the space that was given out. */
export const stated = (value: bigint, bits: 32 | 128): boolean => {
  const [closest] = ranges
    .filter((range) => range.bits === bits && range.first <= value && value <= range.last)
    .sort((a, b) => (a.last - a.first < b.last - b.first ? -1 : 1))
  if (closest !== undefined) return closest.reachable
  if (bits === 32) return true
  if (value >> 32n === 0x64ff9b0000000000000000n) return stated(value & 0xffffffffn, 32)
  return value >> 125n === 1n && !isIsatap(value)
}

// At and around the edges of the blocks, where mistakes are.
const nearEdges = fc
  .tuple(
    fc.constantFrom(...ranges),
    fc.constantFrom("first", "last", "inside"),
    fc.integer({ min: -2, max: 2 }),
    fc.bigInt(0n, 1n << 128n)
  )
  .map(([{ bits, first, last }, where, off, random]) => {
    const base = where === "first" ? first : where === "last" ? last : first + (random % (last - first + 1n))
    return { bits, value: BigInt.asUintN(bits, base + BigInt(off)) }
  })
const anywhere = fc.oneof(
  fc.bigInt(0n, (1n << 32n) - 1n).map((value) => ({ bits: 32 as const, value })),
  fc.bigInt(0n, (1n << 128n) - 1n).map((value) => ({ bits: 128 as const, value })),
  fc.bigInt(1n << 125n, (1n << 126n) - 1n).map((value) => ({ bits: 128 as const, value })),
  // NAT64 of any IPv4 address, ISATAP behind any network.
  fc.bigInt(0n, (1n << 32n) - 1n).map((value) => ({ bits: 128 as const, value: (0x64ff9bn << 96n) | value })),
  fc
    .tuple(fc.bigInt(0n, (1n << 64n) - 1n), fc.constantFrom(0x5efen, 0x2005efen), fc.bigInt(0n, (1n << 32n) - 1n))
    .map(([network, id, ipv4]) => ({ bits: 128 as const, value: (network << 64n) | (id << 32n) | ipv4 }))
)

/** IP addresses as numbers, where mistakes are and anywhere. */
export const addresses = fc.oneof(nearEdges, anywhere)
