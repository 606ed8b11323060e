import { Either } from "effect"
import { type Address, domainSeparator, encodeAbiParameters, type Hex, keccak256, toHex } from "viem"
import { expect, it } from "vitest"
import type { ViewResult } from "../../src/Chains/rpc/contractViews.ts"
import { feeSteps } from "../../src/Collect/fees.ts"
import { domainOf } from "../../src/Collect/transactions.ts"

it("a token whose domain is not that of its name and version here takes no authorizations", () => {
  const contract: Address = "0x1111111111111111111111111111111111111111"
  const type = keccak256(
    toHex(
      "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    )
  )
  const domain = { name: "USD Coin", version: "2", chainId: 31_337, verifyingContract: contract }
  const text = (value: string) => encodeAbiParameters([{ type: "string" }], [value])
  const answers = (over: Partial<typeof domain> = {}, typeHash: Hex = type): ReadonlyArray<ViewResult> =>
    [typeHash, domainSeparator({ domain: { ...domain, ...over } }), text("USD Coin"), text("2")].map(Either.right)
  expect(domainOf(contract, 31_337, answers())).toEqual({ name: "USD Coin", version: "2" })
  const others: ReadonlyArray<Partial<typeof domain>> = [
    { name: "USDC" },
    { version: "1" },
    { chainId: 1 },
    { verifyingContract: "0x2222222222222222222222222222222222222222" }
  ]
  for (const over of others) expect(domainOf(contract, 31_337, answers(over)), JSON.stringify(over)).toBeUndefined()
  expect(domainOf(contract, 31_337, answers({}, keccak256("0x")))).toBeUndefined()
})

it("each step of the fees offers a tenth more than the one before, in the tip too: nodes replace nothing otherwise", () => {
  const gwei = 10n ** 9n
  for (const [baseFee, tip] of [
    [30n * gwei, 2n * gwei],
    [7n, 1n]
  ] as const) {
    const steps = Either.getOrThrow(feeSteps({ baseFee, tip }, 8, undefined))
    expect(steps).toHaveLength(8)
    for (const [i, before] of steps.slice(0, -1).entries()) {
      const { most = "0", tip: offered = "0" } = steps[i + 1] ?? {}
      expect(BigInt(most) * 10n, `${i}`).toBeGreaterThanOrEqual(BigInt(before.most) * 11n)
      expect(BigInt(offered) * 10n, `${i}`).toBeGreaterThanOrEqual(BigInt(before.tip) * 11n)
    }
  }
})

it("a fee limit of just what gas costs at present is the only step, and a lower limit is refused", () => {
  const gwei = 10n ** 9n
  const market = { baseFee: 30n * gwei, tip: 2n * gwei }
  expect(Either.getOrThrow(feeSteps(market, 3, 32n * gwei))).toEqual([{ most: `${32n * gwei}`, tip: `${2n * gwei}` }])
  expect(Either.flip(feeSteps(market, 3, 32n * gwei - 1n)).pipe(Either.getOrThrow).message).toContain(
    "A unit of gas costs 32 gwei at present, above --max-fee-gwei"
  )
})
