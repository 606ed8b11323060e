import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import ipaddr from "ipaddr.js"
import { isMetadata, isPublic } from "../../../src/Webhooks/transport/TargetGuard.ts"
import { addresses, stated, toBytes } from "../../lib/registries.ts"

it("agrees with the registries at the edges of every block, and anywhere", () => {
  return fc.assert(
    fc.property(addresses, ({ bits, value }) => {
      expect(isPublic(toBytes(value, bits))).toBe(stated(value, bits))
    }),
    { numRuns: 5_000 }
  )
})

const bytesOf = (address: string) => ipaddr.parse(address).toByteArray()

it("an address beside one of a metadata service is public, and NAT64 of a public address is too", () => {
  for (const address of ["168.63.129.17", "64:ff9b::5db8:d822"]) {
    expect([isPublic(bytesOf(address)), isMetadata(bytesOf(address))]).toEqual([true, false])
  }
})

const metadata = [
  "169.254.169.254",
  "169.254.170.2",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
  "fd00:c1::a9fe:a9fe",
  "fd00:42::42",
  "fd00:a9fe:a9fe::1",
  "fd00:100::100:200",
  "fe80::a9fe:a9fe",
  // 169.254.169.254 in the clothes of IPv6: compatible, mapped, translated, NAT64 of each length, 6to4, Teredo's server
  // and its client, ISATAP.
  "::a9fe:a9fe",
  "::ffff:169.254.169.254",
  "::ffff:0:a9fe:a9fe",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b:1:a9fe:a9:fe00::",
  "64:ff9b:1:a9:fe:a9fe::",
  "64:ff9b:1:0:a9:fea9:fe00::",
  "64:ff9b:1::a9fe:a9fe",
  "2002:a9fe:a9fe::1",
  "2001:0:a9fe:a9fe::1",
  "2001:0:808:808::5601:5601",
  "2606:4700::5efe:a9fe:a9fe",
  "2606:4700::200:5efe:a9fe:a9fe"
]

it("a metadata service is known by each of its addresses, however IPv6 embeds it", () => {
  expect(metadata.filter((address) => !isMetadata(bytesOf(address)))).toEqual([])
})
