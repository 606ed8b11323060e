import { expect, it } from "vitest"
import { isSameAddress, toChecksummed } from "../../src/Domain/Address.ts"

// Of https://eips.ethereum.org/EIPS/eip-55
const checksummed = [
  "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
  "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
  "0x52908400098527886E0F7030069857D2E4169EE7",
  "0xde709f2102306220921060314715629080e2fb77"
]

it.each(checksummed)("%s is found in its own form, in lower case and in upper case", (address) => {
  const upper = `0x${address.slice(2).toUpperCase()}`
  expect([address, address.toLowerCase(), upper].map(toChecksummed)).toEqual([address, address, address])
})

it.each([
  ["mixed case that fails its checksum", "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
  ["no prefix", "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
  ["a prefix in upper case", "0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
  ["a digit too few", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe"],
  ["a digit too many", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed0"],
  ["another character", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg"],
  ["white space behind it", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed\n"],
  ["nothing", ""]
])("an address with %s is invalid", (_, text) => expect(toChecksummed(text)).toBeUndefined())

it("the same address is recognised in any case, and another one, or none, is not", () => {
  const [one = "", other] = checksummed
  expect(isSameAddress(one, one.toLowerCase())).toBe(true)
  expect(isSameAddress(one, other)).toBe(false)
  expect(isSameAddress(one, undefined)).toBe(false)
})
