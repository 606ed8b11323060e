import { expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { type Address, domainSeparator, encodeAbiParameters, type Hex, keccak256, numberToHex, toHex } from "viem"
import type { ViewResult } from "../../src/Chains/rpc/contractViews.ts"
import { domainOf } from "../../src/Collect/authorization.ts"
import { feeSteps } from "../../src/Collect/fees.ts"
import { iso } from "../../src/lib/moment.ts"
import { collecting, holdsExactly, someone } from "./collecting.ts"
import { refusal } from "./refusal.ts"

const usd = 10n ** 6n

it.scopedLive("moves more addresses than one batch carries, each by its own signature", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 103, 20n * usd)
    yield* scene.fund
    const { plan } = yield* scene.plan({ received: scene.received(103) })
    const signed = yield* scene.sign(plan)
    expect([signed.authorizations.length, signed.transactions.length]).toEqual([103, 2])
    yield* scene.mining
    const { result } = yield* scene.send(signed)
    expect(result.differences).toEqual([])
    expect(result.transfers).toHaveLength(103)
    expect(holdsExactly(result)).toBe(true)
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(2_060n * usd)
  })
)

it.scopedLive("notes each of two refunds of one address with its own amount", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    yield* scene.fund
    const address = scene.wallet.address(0)
    const refund = (id: string, amount: bigint) => ({ id, address, index: 0, currency: "USDC", amount })
    const { plan } = yield* scene.plan({ refunds: [refund("exc_1", 5n * usd), refund("exc_2", 7n * usd)] })
    expect(plan.moves.map(({ way }) => way)).toEqual(["authorization", "authorization"])
    yield* scene.mining
    const { result } = yield* scene.send(yield* scene.sign(plan))
    expect(result.differences).toEqual([])
    expect(new Set(result.transfers.map(({ hash }) => hash)).size).toBe(1)
    expect(result.transfers.map(({ amount, refund }) => [refund, amount])).toEqual([
      ["exc_1", `${5n * usd}`],
      ["exc_2", `${7n * usd}`]
    ])
    expect(yield* scene.local.tokenBalance("USDC", scene.destination)).toBe(12n * usd)
  })
)

it.scopedLive("plans no refunds of one address that are more than it has together", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    yield* scene.local.mine()
    const address = scene.wallet.address(0)
    const refund = (id: string, amount: bigint) => ({ id, address, index: 0, currency: "USDC", amount })
    const exact = yield* scene.plan({ refunds: [refund("exc_1", 15n * usd), refund("exc_2", 5n * usd)] })
    expect(exact.plan.moves).toHaveLength(2)
    expect(
      yield* refusal(scene.plan({ refunds: [refund("exc_1", 15n * usd), refund("exc_2", 5n * usd + 1n)] }))
    ).toContain(`exc_2 is 5.000001 USDC, and ${address} has 5 for it`)
  })
)

it.scopedLive("plans nothing while a transaction of the sponsor is under way", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 1, 20n * usd)
    yield* scene.fund
    yield* scene.local.rpc("anvil_impersonateAccount", [scene.sponsor])
    yield* scene.local.rpc("eth_sendTransaction", [{ from: scene.sponsor, to: someone(), value: "0x1" }])
    expect(yield* refusal(scene.plan({ received: scene.received(1) }))).toContain(
      `${scene.sponsor} has a transaction under way`
    )
    yield* scene.local.mine()
    const { plan } = yield* scene.plan({ received: scene.received(1) })
    expect(plan.sponsor.nonce).toBe(1)
  })
)

it.scopedLive("sends no authorizations that end within minutes", () =>
  Effect.gen(function* () {
    const scene = yield* collecting()
    yield* scene.pay("USDC", 3, 20n * usd)
    yield* scene.fund
    const { plan } = yield* scene.plan({ received: scene.received(3) })
    const signed = yield* scene.sign(plan)
    const mineAt = (time: number) =>
      Effect.zipRight(scene.local.rpc("evm_setNextBlockTimestamp", [numberToHex(time)]), scene.local.mine())
    yield* mineAt(plan.validBefore - 599)
    expect((yield* scene.local.head).timestamp).toBe(plan.validBefore - 599)
    yield* scene.mining
    expect(yield* scene.refused(signed)).toContain(
      `The plan's authorizations end, or have ended, at ${iso(plan.validBefore * 1000)}`
    )
    expect(BigInt(yield* scene.local.rpc<Hex>("eth_getTransactionCount", [scene.sponsor, "pending"]))).toBe(0n)
  })
)

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
