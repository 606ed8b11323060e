import { describe, expect, it } from "@effect/vitest"
import { Either } from "effect"
import fc from "fast-check"
import { canonicalRange, inRanges } from "../../src/lib/IpRange.ts"

describe("a CIDR block", () => {
  it.each([
    ["203.0.113.0/24", "203.0.113.0/24"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["203.0.113.7/32", "203.0.113.7/32"],
    ["2001:DB8::/32", "2001:db8::/32"],
    ["2001:0db8:0:0:0:0:0:0/32", "2001:db8::/32"],
    ["::/0", "::/0"],
    // An address alone.
    ["203.0.113.7", "203.0.113.7/32"],
    ["2001:db8::7", "2001:db8::7/128"],
    // IPv4-mapped.
    ["::ffff:203.0.113.7", "203.0.113.7/32"],
    ["::ffff:203.0.113.0/120", "203.0.113.0/24"],
    ["::ffff:cb00:7100/120", "203.0.113.0/24"],
    ["::ffff:0:0/96", "0.0.0.0/0"]
  ])("%s is %s", (text, canonical) => expect(Either.getOrThrow(canonicalRange(text))).toBe(canonical))

  it.each([
    ["203.0.113.7/24", "has an address inside its block: write 203.0.113.0/24, or 203.0.113.7 for it alone"],
    ["2001:db8::7/64", "has an address inside its block: write 2001:db8::/64, or 2001:db8::7 for it alone"],
    ["::ffff:203.0.113.7/120", "has an address inside its block: write 203.0.113.0/24, or 203.0.113.7 for it alone"]
  ])("%s, an address with a prefix, is refused with both meanings", (text, problem) =>
    expect(Either.merge(canonicalRange(text))).toBe(problem)
  )

  it.each([
    ...["", "/", "/24", "any", "localhost", "shop.example.com", "203.0.113.0/", "203.0.113.0/33", "203.0.113.0/-1"],
    ...["203.0.113.0/024", "203.0.113.0/24/24", "203.0.113.0/2 4", " 203.0.113.0/24", "203.0.113/24", "127.1"],
    ...["0177.0.0.1", "010.0.0.0/8", "0xcb007100", "203.0.113.256", "203.0.113.0/255.255.255.0"],
    ...["2001:db8::/129", "2001:db8:::/32", "fe80::1%eth0", "fe80::%eth0/64", "[2001:db8::]/32", "::ffff:010.0.0.1"]
  ])("%j is invalid", (text) =>
    expect(Either.merge(canonicalRange(text))).toContain("must be an IP address or a CIDR block")
  )
})

describe("an address", () => {
  it.each([
    ["203.0.113.7", true],
    ["203.0.114.7", false],
    ["::ffff:203.0.113.7", true],
    ["::ffff:cb00:7107", true],
    ["2001:db8:1::1", true],
    ["2001:db9::1", false],
    ["192.0.2.1", true],
    ["192.0.2.2", false],
    ["", false],
    ["unknown", false]
  ])("%j: is it in one of some blocks? %s", (address, is) =>
    expect(inRanges(["203.0.113.0/24", "2001:db8::/32", "192.0.2.1/32"])(address)).toBe(is)
  )

  it("of one family is in no block of the other", () => {
    expect(inRanges(["0.0.0.0/0"])("2001:db8::1")).toBe(false)
    expect(inRanges(["::/0"])("203.0.113.7")).toBe(false)
  })

  it("is in a block if the bits of its prefix are the same", () => {
    const text = (value: bigint, length: number) =>
      length === 32
        ? [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join(".")
        : Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16)).join(":")
    const pairs = fc.constantFrom(32, 128).chain((length) =>
      fc.record({
        length: fc.constant(length),
        bits: fc.integer({ min: 0, max: length }),
        network: fc.bigInt({ min: 0n, max: (1n << BigInt(length)) - 1n }),
        // Often one that differs in a single bit.
        flipped: fc.option(fc.integer({ min: 0, max: length - 1 })),
        other: fc.bigInt({ min: 0n, max: (1n << BigInt(length)) - 1n })
      })
    )
    return fc.assert(
      fc.property(pairs, ({ bits, flipped, length, network, other }) => {
        const mapped = length === 128 && (network >> 32n === 0xffffn || other >> 32n === 0xffffn)
        fc.pre(!mapped)
        const address = flipped === null ? other : network ^ (1n << BigInt(flipped))
        const host = BigInt(length - bits)
        const range = canonicalRange(`${text((network >> host) << host, length)}/${bits}`)
        expect(Either.isRight(range)).toBe(true)
        const isIn = inRanges([Either.getOrThrow(range)])
        expect(isIn(text(network, length))).toBe(true)
        expect(isIn(text(address, length))).toBe(address >> host === network >> host)
      })
    )
  })
})
