import { expect, it } from "@effect/vitest"
import { uriOfPage, walletCall } from "../../src/Sandbox/demo.ts"

const to = `0x${"a".repeat(40)}`
const contract = `0x${"b".repeat(40)}`

it("a wallet sends what a payment's URI says: coins, or a transfer of the token's contract", () => {
  expect(walletCall(`ethereum:${to}@8453?value=25`)).toMatchObject({ chainId: 8453, to, value: 25n })
  const data = `0xa9059cbb${to.slice(2).padStart(64, "0")}${"19".padStart(64, "0")}`
  expect(walletCall(`ethereum:${contract}@10/transfer?address=${to}&uint256=25`)).toMatchObject({
    chainId: 10,
    to: contract,
    data
  })
})

it("any other text results in no transaction", () => {
  for (const text of [
    "",
    to,
    `ethereum:${to}`,
    `ethereum:${to}@1?value=1e18`,
    `ethereum:${to}@1/approve?address=${to}&uint256=1`
  ]) {
    expect(walletCall(text), text).toBeUndefined()
  }
})

it("the URI of a page is that of its link, as HTML writes it", () => {
  expect(uriOfPage('<a href="/x">x</a><a id="w" href="ethereum:0x1@1/transfer?address=0x2&amp;uint256=3">')).toBe(
    "ethereum:0x1@1/transfer?address=0x2&uint256=3"
  )
  expect(uriOfPage("<p>paid</p>")).toBeUndefined()
})
